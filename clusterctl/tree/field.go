package tree

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
