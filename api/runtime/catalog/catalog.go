package catalog

import (
	"errors"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog has the registered hooks. It must not be changed while it is used concurrently.
type Catalog struct {
	hooks map[GroupVersionHook]*registered
	// byFunction finds hooks by the code of their function.
	byFunction map[uintptr]GroupVersionHook
	// scheme has the types of requests and responses, and converts between their versions.
	scheme *runtime.Scheme
}

// registered is a hook in a Catalog.
type registered struct {
	meta              HookMeta
	request, response reflect.Type
}

// New returns an empty catalog.
func New() *Catalog {
	return &Catalog{hooks: map[GroupVersionHook]*registered{}, byFunction: map[uintptr]GroupVersionHook{}, scheme: runtime.NewScheme()}
}

// AddHook registers a hook under the name of its function; the names of the types of request and response are this name, followed by
// Request and Response. A hook that is not a function of that form, or that is already registered, is a programming error: AddHook
// panics.
func (c *Catalog) AddHook(gv schema.GroupVersion, hook Hook, meta *HookMeta) {
	if err := c.add(gv, hook, meta); err != nil {
		panic(err)
	}
}

func (c *Catalog) add(gv schema.GroupVersion, hook Hook, meta *HookMeta) error {
	name, r, err := examine(hook)
	if err != nil {
		return err
	}
	if meta != nil {
		r.meta = *meta
	}
	key := GroupVersionHook{Group: gv.Group, Version: gv.Version, Hook: name}
	switch {
	case gv.Group == "" || gv.Version == "":
		return fmt.Errorf("cannot register hook %s: group and version are required", name)
	case c.hooks[key] != nil:
		return fmt.Errorf("cannot register hook %s: it already exists", key)
	}
	for suffix, is := range map[string]reflect.Type{"Request": r.request, "Response": r.response} {
		object, ok := reflect.New(is).Interface().(runtime.Object)
		if !ok || is.Name() != name+suffix {
			return fmt.Errorf("cannot register hook %s: its %s must be a runtime.Object of type %s", key, strings.ToLower(suffix), name+suffix)
		}
		c.scheme.AddKnownTypeWithName(gv.WithKind(is.Name()), object)
	}
	c.hooks[key], c.byFunction[reflect.ValueOf(hook).Pointer()] = r, key
	return nil
}

// examine returns the name of a hook's function, and the types of its arguments.
func examine(hook Hook) (name string, r *registered, err error) {
	is := reflect.TypeOf(hook)
	if is == nil || is.Kind() != reflect.Func || is.NumIn() != 2 || is.NumOut() != 0 ||
		is.In(0).Kind() != reflect.Pointer || is.In(1).Kind() != reflect.Pointer {
		return "", nil, fmt.Errorf("%T is not a hook: it must be a function of pointers to a request and a response", hook)
	}
	name = goruntime.FuncForPC(reflect.ValueOf(hook).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:], &registered{request: is.In(0).Elem(), response: is.In(1).Elem()}, nil
}

// GroupVersionHook returns group, version and name of a registered hook.
func (c *Catalog) GroupVersionHook(hook Hook) (GroupVersionHook, error) {
	if v := reflect.ValueOf(hook); v.IsValid() && v.Kind() == reflect.Func {
		if found, ok := c.byFunction[v.Pointer()]; ok {
			return found, nil
		}
	}
	return GroupVersionHook{}, fmt.Errorf("hook %T is not registered", hook)
}

// Hooks returns all hooks, sorted.
func (c *Catalog) Hooks() []GroupVersionHook {
	out := make([]GroupVersionHook, 0, len(c.hooks))
	for h := range c.hooks {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b GroupVersionHook) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// IsHookRegistered reports whether a hook is registered.
func (c *Catalog) IsHookRegistered(hook GroupVersionHook) bool { return c.hooks[hook] != nil }

// Meta returns what is documented about a hook.
func (c *Catalog) Meta(hook GroupVersionHook) (HookMeta, error) {
	r, err := c.find(hook)
	if err != nil {
		return HookMeta{}, err
	}
	return r.meta, nil
}

// NewRequest returns an empty request of a hook.
func (c *Catalog) NewRequest(hook GroupVersionHook) (runtime.Object, error) {
	r, err := c.find(hook)
	if err != nil {
		return nil, err
	}
	return c.scheme.New(c.kind(hook, r.request))
}

// NewResponse returns an empty response of a hook.
func (c *Catalog) NewResponse(hook GroupVersionHook) (runtime.Object, error) {
	r, err := c.find(hook)
	if err != nil {
		return nil, err
	}
	return c.scheme.New(c.kind(hook, r.response))
}

// Request returns the kind of a hook's requests.
func (c *Catalog) Request(hook GroupVersionHook) (schema.GroupVersionKind, error) {
	r, err := c.find(hook)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return c.kind(hook, r.request), nil
}

// Response returns the kind of a hook's responses.
func (c *Catalog) Response(hook GroupVersionHook) (schema.GroupVersionKind, error) {
	r, err := c.find(hook)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	return c.kind(hook, r.response), nil
}

func (*Catalog) kind(hook GroupVersionHook, is reflect.Type) schema.GroupVersionKind {
	return hook.GroupVersion().WithKind(is.Name())
}

func (c *Catalog) find(hook GroupVersionHook) (*registered, error) {
	if r := c.hooks[hook]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("hook %s is not registered", hook)
}

// AddConversion registers a function that converts between versions of requests or responses; a and b are pointers to them.
func (c *Catalog) AddConversion(a, b any, f conversion.ConversionFunc) error {
	return c.scheme.AddConversionFunc(a, b, f)
}

// Convert converts a request or response into another version. scope is passed to the conversion function.
func (c *Catalog) Convert(in, out, scope any) error { return c.scheme.Convert(in, out, scope) }

// Builder collects hooks of a group and version to register.
type Builder struct {
	schema.GroupVersion
	register []func(*Catalog) error
}

// RegisterHook adds a hook.
func (b *Builder) RegisterHook(hook Hook, meta *HookMeta) *Builder {
	b.register = append(b.register, func(c *Catalog) error { return c.add(b.GroupVersion, hook, meta) })
	return b
}

// Register adds a function that changes catalogs, for example by conversions.
func (b *Builder) Register(f func(*Catalog) error) *Builder {
	b.register = append(b.register, f)
	return b
}

// AddToCatalog registers all hooks in a catalog.
func (b *Builder) AddToCatalog(c *Catalog) error {
	var errs []error
	for _, f := range b.register {
		errs = append(errs, f(c))
	}
	return errors.Join(errs...)
}
