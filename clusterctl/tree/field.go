package tree

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Class returns the ClusterClass of a Cluster in v1beta1 or v1beta2, and the path of the field that names it. Both are empty if it has
// none.
func Class(cluster *unstructured.Unstructured) (class types.NamespacedName, path []string) {
	for _, in := range []struct{ name, namespace []string }{
		{[]string{"spec", "topology", "class"}, []string{"spec", "topology", "classNamespace"}},
		{[]string{"spec", "topology", "classRef", "name"}, []string{"spec", "topology", "classRef", "namespace"}},
	} {
		if name := Text(cluster, in.name...); name != "" {
			return types.NamespacedName{Namespace: cmp.Or(Text(cluster, in.namespace...), cluster.GetNamespace()), Name: name}, in.name
		}
	}
	return class, nil
}

// Text returns the string in a field; empty if the field has no string, or if u is nil.
func Text(u *unstructured.Unstructured, path ...string) string {
	if u == nil {
		return ""
	}
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// Number returns the integer in a field; 0 if the field has no integer, or if u is nil.
func Number(u *unstructured.Unstructured, path ...string) int64 {
	if u == nil {
		return 0
	}
	n, _, _ := unstructured.NestedInt64(u.Object, path...)
	return n
}

// True reports whether a field is true.
func True(u *unstructured.Unstructured, path ...string) bool {
	if u == nil {
		return false
	}
	b, _, _ := unstructured.NestedBool(u.Object, path...)
	return b
}
