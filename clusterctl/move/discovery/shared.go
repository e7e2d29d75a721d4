package discovery

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Shared is the ClusterClasses that namespaces share. They are read once, because a move does not change them, and the Clusters of other
// namespaces only for classes of the namespace that is moved.
type Shared struct {
	// of other namespaces, with their templates, by class; nil if the class cannot be read
	foreign map[types.NamespacedName][]graph.Object
	// used are the classes that the Clusters of each namespace use; nil until they are read.
	used map[string][]types.NamespacedName
}

// add marks the shared classes among the objects of the reader's namespace, and adds those of other namespaces that its Clusters use.
func (s *Shared) add(ctx context.Context, r *Reader, objects []graph.Object) ([]graph.Object, error) {
	for i := range objects {
		o := &objects[i]
		// What is removed already is removed completely.
		if _, removed := o.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]; !o.IsClass() || removed {
			continue
		}
		var err error
		if o.Shared, err = s.usedElsewhere(ctx, r, o.Key().NamespacedName); err != nil {
			return nil, err
		}
	}
	all := objects
	var seen []types.NamespacedName
	for _, o := range objects {
		if !o.IsCluster() {
			continue
		}
		key, _ := tree.Class(o.Unstructured)
		if key.Name == "" || key.Namespace == r.Namespace || slices.Contains(seen, key) {
			continue
		}
		seen = append(seen, key)
		found, err := s.class(ctx, r, key)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			// Two classes may have the same templates.
			if !slices.ContainsFunc(all, func(other graph.Object) bool { return other.Key() == o.Key() }) {
				all = append(all, o)
			}
		}
	}
	return all, nil
}

// usedElsewhere reports whether a class of the namespace is used by Clusters of others. If Clusters of all namespaces cannot be listed, it
// counts as unused: webhooks do not let a class go that is in use.
func (s *Shared) usedElsewhere(ctx context.Context, r *Reader, class types.NamespacedName) (bool, error) {
	if s.used == nil {
		kind, ok := r.kind(clusterv1beta1.GroupVersion.WithKind("Cluster").GroupKind())
		if !ok {
			return false, nil
		}
		clusters, err := r.list(ctx, kind, "")
		if err != nil && !apierrors.IsForbidden(err) {
			return false, err
		}
		s.used = map[string][]types.NamespacedName{}
		for _, c := range clusters {
			if key, _ := tree.Class(c.Unstructured); key.Name != "" {
				s.used[c.GetNamespace()] = append(s.used[c.GetNamespace()], key)
			}
		}
	}
	for namespace, classes := range s.used {
		if namespace != r.Namespace && slices.Contains(classes, class) {
			return true, nil
		}
	}
	return false, nil
}

// class reads a class of another namespace, and the templates to which it refers. It returns nothing for one that does not exist or may not
// be read: the target may have it.
func (s *Shared) class(ctx context.Context, r *Reader, key types.NamespacedName) ([]graph.Object, error) {
	if found, known := s.foreign[key]; known {
		return found, nil
	}
	kind, ok := r.kind(clusterv1beta1.GroupVersion.WithKind("ClusterClass").GroupKind())
	if !ok {
		return nil, nil
	}
	var found []graph.Object
	class, err := r.get(ctx, kind, key)
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	if class != nil {
		found = append(found, graph.Object{Unstructured: class, Kind: kind, Shared: true})
		for _, ref := range templates(class) {
			kind, ok := r.kind(ref.kind)
			if !ok {
				continue
			}
			template, err := r.get(ctx, kind, types.NamespacedName{Namespace: key.Namespace, Name: ref.name})
			if err != nil {
				return nil, err
			}
			if template != nil {
				found = append(found, graph.Object{Unstructured: template, Kind: kind, Shared: true})
			}
		}
	}
	if s.foreign == nil {
		s.foreign = map[types.NamespacedName][]graph.Object{}
	}
	s.foreign[key] = found
	return found, nil
}

// template is a reference of a ClusterClass.
type template struct {
	kind schema.GroupKind
	name string
}

// templates returns the templates of a class, in either version of its API: the references in ref or templateRef, except those of health
// checks, which refer to the namespace of their Machines.
func templates(class *unstructured.Unstructured) []template {
	var found []template
	var walk func(value any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for field, child := range v {
				switch field {
				case "machineHealthCheck", "healthCheck":
				case "ref", "templateRef":
					ref, _ := child.(map[string]any)
					apiVersion, _ := ref["apiVersion"].(string)
					kind, _ := ref["kind"].(string)
					name, _ := ref["name"].(string)
					next := template{schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind(), name}
					if name != "" && !slices.Contains(found, next) {
						found = append(found, next)
					}
				default:
					walk(child)
				}
			}
		}
	}
	for _, part := range []string{"infrastructure", "controlPlane", "workers"} {
		value, _, _ := unstructured.NestedFieldNoCopy(class.Object, "spec", part)
		walk(value)
	}
	return found
}

// kind returns the kind of the reader with a group and name.
func (r *Reader) kind(k schema.GroupKind) (graph.Kind, bool) {
	i := slices.IndexFunc(r.Kinds, func(other graph.Kind) bool { return other.GroupKind() == k })
	if i < 0 {
		return graph.Kind{}, false
	}
	return r.Kinds[i], true
}

// get reads an object; nil if it does not exist.
func (r *Reader) get(ctx context.Context, k graph.Kind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	err := r.Side.Do(ctx, "read "+k.Kind+" "+key.String(), func(ctx context.Context) error {
		o.SetGroupVersionKind(k.GroupVersionKind)
		return r.Side.Get(ctx, key, o)
	})
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return o, nil
}
