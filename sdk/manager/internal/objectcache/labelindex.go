package objectcache

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Indexed returns a cache that has an index for each of these label keys. A list whose label selector requires one value of such a key only
// visits objects with that value; of several keys, the first is used. Lists return the same objects as without an index. Kinds are
// indexed at their first such list.
func Indexed(c cache.Cache, scheme *runtime.Scheme, keys ...string) cache.Cache {
	return &indexed{Cache: c, scheme: scheme, keys: keys}
}

type indexed struct {
	cache.Cache
	scheme *runtime.Scheme
	keys   []string
	// indexes has the indexes by their id.
	indexes sync.Map
}

// id identifies an index. Each Go type of a kind has its own cache: the generated one, unstructured, and metadata.
type id struct {
	list reflect.Type
	kind schema.GroupVersionKind
	key  string
}

// index is an index; mu serializes attempts to add it.
type index struct {
	mu    sync.Mutex
	added bool
}

// List lists objects.
func (c *indexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	key, value, found := c.required(o)
	if !found {
		return c.Cache.List(ctx, list, opts...)
	}
	if err := c.ensure(ctx, list, key); err != nil {
		return fmt.Errorf("indexing %T by label %s: %w", list, key, err)
	}
	o.FieldSelector = fields.OneTermEqualSelector(field(key), value)
	return c.Cache.List(ctx, list, o)
}

// required returns the label key whose index applies, and its required value.
func (c *indexed) required(o *client.ListOptions) (key, value string, found bool) {
	if o.LabelSelector == nil || o.FieldSelector != nil {
		return "", "", false
	}
	requirements, selectable := o.LabelSelector.Requirements()
	if !selectable {
		return "", "", false
	}
	for _, key := range c.keys {
		i := slices.IndexFunc(requirements, func(r labels.Requirement) bool { return r.Key() == key && equality(r) })
		if i >= 0 {
			return key, requirements[i].ValuesUnsorted()[0], true
		}
	}
	return "", "", false
}

// equality reports whether a requirement has exactly one value that matches.
func equality(r labels.Requirement) bool {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return len(r.ValuesUnsorted()) == 1
	}
	return false
}

// ensure adds the index of a kind, unless it exists.
func (c *indexed) ensure(ctx context.Context, list client.ObjectList, key string) error {
	kind, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	stored, _ := c.indexes.LoadOrStore(id{list: reflect.TypeOf(list), kind: kind, key: key}, &index{})
	of := stored.(*index)
	of.mu.Lock()
	defer of.mu.Unlock()
	if of.added {
		return nil
	}
	obj, err := c.item(list, kind)
	if err != nil {
		return err
	}
	if err := c.IndexField(ctx, obj, field(key), values(key)); err != nil {
		return err
	}
	of.added = true
	return nil
}

// item returns an empty item of a list.
func (c *indexed) item(list client.ObjectList, kind schema.GroupVersionKind) (client.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		return u, nil
	case *metav1.PartialObjectMetadataList:
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(kind)
		return m, nil
	}
	obj, err := c.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is not an object with metadata", obj)
	}
	return typed, nil
}

// field is the name of the index of a label key.
func field(key string) string { return "metadata.labels/" + key }

func values(key string) client.IndexerFunc {
	return func(obj client.Object) []string {
		if value, labeled := obj.GetLabels()[key]; labeled {
			return []string{value}
		}
		return nil
	}
}
