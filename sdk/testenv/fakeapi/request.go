package fakeapi

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Request is a request of a controller.
type Request struct {
	// Verb is that of RBAC rules, or apply.
	Verb        string
	Kind        string
	Subresource string
	// Name is empty for list and deletecollection.
	Name string
	// Object is what is sent, or read into; nil for list and apply.
	Object client.Object
	// Cached is true for reads from the cache.
	Cached bool
}

// String returns the request in the form of Server.Writes: "patch Machine/status m-1".
func (r Request) String() string {
	out := r.Verb + " " + r.Kind
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	return strings.TrimSuffix(out+" "+r.Name, " ")
}

// IsWrite reports whether the request changes something.
func (r Request) IsWrite() bool { return r.Verb != "get" && r.Verb != "list" }

// Faults disturb the requests of controllers, also those that a cache answers. A function may act as another client meanwhile; it may
// set itself to nil.
type Faults struct {
	// Before is called before a request. Its error, if any, is the response: the request is not sent.
	Before func(Request) error
	// After is called with the response to a request; what it returns is the response that the controller gets.
	After func(Request, error) error
}

// do sends a request through the faults; note records it.
func (f *Faults) do(r Request, note func(Request), send func() error) error {
	if before := f.Before; before != nil {
		if err := before(r); err != nil {
			return err
		}
	}
	note(r)
	err := send()
	if after := f.After; after != nil {
		return after(r, err)
	}
	return err
}

// note records a request.
func (s *Server) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case r.IsWrite():
		s.Writes = append(s.Writes, r.String())
	case !r.Cached:
		s.LiveReads = append(s.LiveReads, r.String())
	}
}

func (s *Server) reads(from client.Reader, cached bool) interceptor.Funcs {
	return reading(&s.Faults, s.note, from, cached)
}

func (s *Server) writes() interceptor.Funcs { return writing(&s.Faults, s.note) }

// reading returns the functions that read objects.
func reading(f *Faults, note func(Request), from client.Reader, cached bool) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			r := Request{Verb: "get", Kind: kindName(obj, c.Scheme()), Name: key.Name, Object: obj, Cached: cached}
			return f.do(r, note, func() error { return from.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			r := Request{Verb: "list", Kind: kindName(list, c.Scheme()), Cached: cached}
			return f.do(r, note, func() error { return from.List(ctx, list, opts...) })
		},
	}
}

// writing returns the functions that write objects.
func writing(f *Faults, note func(Request)) interceptor.Funcs {
	request := func(verb, sub string, c client.Client, obj client.Object) Request {
		return Request{Verb: verb, Kind: kindName(obj, c.Scheme()), Subresource: sub, Name: obj.GetName(), Object: obj}
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return f.do(request("create", "", c, obj), note, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return f.do(request("update", "", c, obj), note, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return f.do(request("patch", "", c, obj), note, func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return f.do(applying(obj), note, func() error { return c.Apply(ctx, obj, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return f.do(request("delete", "", c, obj), note, func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return f.do(request("deletecollection", "", c, obj), note, func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		SubResourceCreate: func(
			ctx context.Context, c client.Client, sub string, obj, content client.Object, opts ...client.SubResourceCreateOption,
		) error {
			return f.do(request("create", sub, c, obj), note, func() error { return c.SubResource(sub).Create(ctx, obj, content, opts...) })
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption,
		) error {
			return f.do(request("update", sub, c, obj), note, func() error { return c.SubResource(sub).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
		) error {
			return f.do(request("patch", sub, c, obj), note, func() error { return c.SubResource(sub).Patch(ctx, obj, p, opts...) })
		},
	}
}

// applying returns the request of a server-side apply.
func applying(obj runtime.ApplyConfiguration) Request {
	r := Request{Verb: "apply", Kind: fmt.Sprintf("%T", obj)}
	if named, ok := obj.(interface {
		GetKind() string
		GetName() string
	}); ok {
		r.Kind, r.Name = named.GetKind(), named.GetName()
	}
	return r
}

// kindOf returns the kind of an object, or of the items of a list.
func kindOf(obj runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	kind, err := apiutil.GVKForObject(obj, scheme)
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	return kind, err
}

// kindName returns the name of the kind; the type of an object that has none.
func kindName(obj runtime.Object, scheme *runtime.Scheme) string {
	kind, err := kindOf(obj, scheme)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	return kind.Kind
}
