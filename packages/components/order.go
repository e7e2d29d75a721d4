package components

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/packages/manifest"
)

// InstallOrder returns objects in an order in which each can be created (manifest.Rank). Objects of equal rank keep their order.
func InstallOrder(objects []unstructured.Unstructured) []unstructured.Unstructured {
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b unstructured.Unstructured) int {
		return cmp.Compare(manifest.Rank(a.GetKind()), manifest.Rank(b.GetKind()))
	})
	return ordered
}
