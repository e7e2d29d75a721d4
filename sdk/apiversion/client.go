package apiversion

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that sends requests in the stored versions. live must not read from a cache.
func (b *Boundary) Client(live client.Client) client.Client {
	return &converting{Client: live, boundary: b, reads: true}
}

// CachedClient is Client for a client that reads all kinds of the Registry from a cache of the Boundary (Cache), which has objects in all
// versions.
func (b *Boundary) CachedClient(c client.Client) client.Client {
	return &converting{Client: c, boundary: b}
}

// BoundaryOf returns the Boundary whose Client or CachedClient a client is; nil for other clients.
func BoundaryOf(client any) *Boundary {
	if c, ok := client.(*converting); ok {
		return c.boundary
	}
	return nil
}

// Reader is Client for a reader of the API server.
func (b *Boundary) Reader(live client.Reader) client.Reader { return reader{live: live, boundary: b} }

// converting is a client whose requests are in the stored versions.
type converting struct {
	client.Client
	boundary *Boundary
	// reads is whether reads are requests.
	reads bool
}

// Get implements client.Reader.
func (c *converting) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if !c.reads {
		return c.Client.Get(ctx, key, obj, opts...)
	}
	return reader{live: c.Client, boundary: c.boundary}.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (c *converting) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if !c.reads {
		return c.Client.List(ctx, list, opts...)
	}
	return reader{live: c.Client, boundary: c.boundary}.List(ctx, list, opts...)
}

// reader reads from an API server.
type reader struct {
	live     client.Reader
	boundary *Boundary
}

// Get implements client.Reader.
func (r reader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	t, err := r.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return r.live.Get(ctx, key, obj, opts...)
	}
	return t.into(ctx, obj, func(stored client.Object) error { return r.live.Get(ctx, key, stored, opts...) })
}

// List implements client.Reader.
func (r reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	t, err := r.boundary.translation(ctx, list)
	if err != nil {
		return err
	}
	if t == nil {
		return r.live.List(ctx, list, opts...)
	}
	stored, err := t.emptyList(list)
	if err != nil {
		return err
	}
	if err := r.live.List(ctx, stored, opts...); err != nil {
		return t.noticed(ctx, err)
	}
	typed := isTyped(list)
	return fillList(list, stored, func(item client.Object) (client.Object, error) {
		converted, err := t.convert(ctx, item, t.stored, t.code)
		if err == nil && typed {
			converted.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // Those of a typed list have none.
		}
		return converted, err
	})
}

// Create implements client.Writer.
func (c *converting) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	t, err := c.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	c.boundary.setOwners(ctx, obj)
	if t == nil {
		return c.Client.Create(ctx, obj, opts...)
	}
	return t.whole(ctx, obj, func(stored client.Object) error { return c.Client.Create(ctx, stored, opts...) })
}

// Update implements client.Writer.
func (c *converting) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	t, err := c.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	c.boundary.setOwners(ctx, obj)
	if t == nil {
		return c.Client.Update(ctx, obj, opts...)
	}
	return t.whole(ctx, obj, func(stored client.Object) error { return c.Client.Update(ctx, stored, opts...) })
}

// Delete implements client.Writer.
func (c *converting) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	t, err := c.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return c.Client.Delete(ctx, obj, opts...)
	}
	return t.byName(ctx, obj, func(stored client.Object) error { return c.Client.Delete(ctx, stored, opts...) })
}

// DeleteAllOf implements client.Writer.
func (c *converting) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	t, err := c.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		return c.Client.DeleteAllOf(ctx, obj, opts...)
	}
	return t.byName(ctx, obj, func(stored client.Object) error { return c.Client.DeleteAllOf(ctx, stored, opts...) })
}

// Patch implements client.Writer.
func (c *converting) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	t, err := c.boundary.translation(ctx, obj)
	if err != nil {
		return err
	}
	if t == nil {
		if patch, err = c.boundary.withOwners(ctx, obj, patch); err != nil {
			return err
		}
		return c.Client.Patch(ctx, obj, patch, opts...)
	}
	translated, err := t.patch(ctx, obj, patch, "")
	if err != nil {
		return err
	}
	if translated, err = t.withOwners(ctx, obj, translated); err != nil {
		return err
	}
	return t.into(ctx, obj, func(stored client.Object) error { return c.Client.Patch(ctx, stored, translated, opts...) })
}

// Apply implements client.Writer. An applied object has to be in the stored version.
func (c *converting) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	if err := c.boundary.checkApplied(ctx, obj); err != nil {
		return err
	}
	return c.Client.Apply(ctx, obj, opts...)
}

// whole sends a request with an object, and sets the object to the response.
func (t *translation) whole(ctx context.Context, obj client.Object, send func(stored client.Object) error) error {
	stored, err := t.toStored(ctx, obj)
	if err != nil {
		return err
	}
	if err := send(stored); err != nil {
		return t.noticed(ctx, err)
	}
	return t.fromStored(ctx, stored, obj)
}

// into sends a request without the content of an object, and sets the object to the response.
func (t *translation) into(ctx context.Context, obj client.Object, send func(stored client.Object) error) error {
	stored, err := t.named(obj)
	if err != nil {
		return err
	}
	if err := send(stored); err != nil {
		return t.noticed(ctx, err)
	}
	return t.fromStored(ctx, stored, obj)
}

// byName sends a request that has only the name of an object, and has no response.
func (t *translation) byName(ctx context.Context, obj client.Object, send func(stored client.Object) error) error {
	stored, err := t.named(obj)
	if err != nil {
		return err
	}
	return t.noticed(ctx, send(stored))
}

// noticed returns the error of a request. If the API server does not serve the version any longer, the kind is looked up, so that the next
// attempt is in another version.
func (t *translation) noticed(ctx context.Context, err error) error {
	if isUnserved(err) {
		if err := t.Boundary.stored.refresh(ctx, t.code.GroupKind()); err != nil {
			t.log.Error(err, "Looking up the stored version failed", "kind", t.code.GroupKind().String())
		}
	}
	return err
}

// isUnserved reports whether the resource was not found, instead of an object.
func isUnserved(err error) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsNotFound(err) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool {
		return c.Type == metav1.CauseTypeUnexpectedServerResponse
	})
}
