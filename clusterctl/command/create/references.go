package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// target is a referenced object.
type target struct {
	kind schema.GroupVersionKind
	name types.NamespacedName
}

// checkReferences checks that all referenced objects are in the set or in the management cluster: the API accepts
// dangling references, but this command would wait for them until it times out.
func checkReferences(ctx context.Context, c client.Reader, objects []unstructured.Unstructured) error {
	present := map[schema.GroupKind]map[types.NamespacedName]bool{}
	for i := range objects {
		o := &objects[i]
		kind := o.GroupVersionKind().GroupKind()
		if present[kind] == nil {
			present[kind] = map[types.NamespacedName]bool{}
		}
		present[kind][types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = true
	}
	for i := range objects {
		for _, t := range targets(&objects[i]) {
			if present[t.kind.GroupKind()][t.name] {
				continue
			}
			if err := found(ctx, c, t); err != nil {
				return fmt.Errorf("%s references %s %s, %w", manifest.Describe(&objects[i]), t.kind.Kind, t.name, err)
			}
		}
	}
	return nil
}

// targets returns the references of an object: a ClusterClass by name, everything else by maps of apiVersion, or apiGroup in v1beta2, kind
// and name.
func targets(o *unstructured.Unstructured) []target {
	var list []target
	if class, _ := tree.Class(o); class.Name != "" && o.GroupVersionKind().GroupKind() == tree.ClusterKind.GroupKind() {
		list = append(list, target{clusterv1beta1.GroupVersion.WithKind("ClusterClass"), class})
	}
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			if t, ok := reference(v, o.GetNamespace()); ok {
				list = append(list, t)
				return
			}
			for _, key := range slices.Sorted(maps.Keys(v)) {
				// Values of variables and patches may look like references.
				if key != "variables" && key != "patches" {
					walk(v[key])
				}
			}
		}
	}
	if o.GroupVersionKind().Group == clusterv1beta1.GroupVersion.Group {
		walk(o.Object["spec"])
	}
	return list
}

// reference reads a map that references a provider's object. A reference by group has no version.
func reference(m map[string]any, namespace string) (target, bool) {
	field := func(key string) string { s, _ := m[key].(string); return s }
	t := target{
		schema.FromAPIVersionAndKind(field("apiVersion"), field("kind")),
		types.NamespacedName{Namespace: cmp.Or(field("namespace"), namespace), Name: field("name")},
	}
	if group := field("apiGroup"); group != "" {
		t.kind.Group, t.kind.Version = group, ""
	}
	return t, t.kind.Kind != "" && t.name.Name != "" && strings.Contains(t.kind.Group, ".")
}

// found returns an error if the object is not in the management cluster.
func found(ctx context.Context, c client.Reader, t target) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(t.kind)
	err := c.Get(ctx, t.name, o)
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("whose kind (%s) does not exist in the management cluster: "+
			"install its provider with `clusterctl init`, or `clusterctl operator init` where the operator manages providers",
			strings.TrimSuffix(t.kind.GroupVersion().String(), "/"))
	case apierrors.IsNotFound(err):
		return errors.New("which does not exist: create it first, or add it to the template")
	default:
		return fmt.Errorf("which cannot be read: %w", err)
	}
}
