// Package transfer pauses Clusters in the source of a move, copies objects to the target, removes them from the source, and resumes
// the Clusters in the target. What its user had paused before stays paused.
//
// It does not decide which objects are moved, and when: see packages graph and move.
package transfer

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
)

// MovedLabel is on objects in the source that are complete in the target; its value is the ID of the move.
const MovedLabel = "clusterctl.cluster.x-k8s.io/moved"

// Moved reports whether an object of the source is complete in the target, so that it may only be removed.
func Moved(o graph.Object, id string) bool {
	_, deleted := o.GetAnnotations()[clusterctlv1.DeleteForMoveAnnotation]
	return deleted && o.GetLabels()[MovedLabel] == id
}

// serverFields are set by API servers.
var serverFields = []string{
	"uid", "resourceVersion", "generation", "selfLink", "managedFields",
	"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// Desired returns the object as it is written to the target. References to owners that the target does not have are
// dropped, because the target's garbage collector would delete the object; uid returns the UID of an owner in the target.
func Desired(o graph.Object, uid func(types.UID) (types.UID, bool)) *unstructured.Unstructured {
	d := o.DeepCopy()
	for _, field := range serverFields {
		unstructured.RemoveNestedField(d.Object, "metadata", field)
	}
	if d.GetName() != "" {
		d.SetGenerateName("")
	}
	var owners []metav1.OwnerReference
	for _, ref := range d.GetOwnerReferences() {
		if owner, ok := uid(ref.UID); ok {
			ref.UID = owner
			owners = append(owners, ref)
		}
	}
	d.SetOwnerReferences(owners)
	return d
}

// same reports whether an object of the target is as desired. Status is not compared: where it is a subresource, it is
// not moved.
func same(desired, current *unstructured.Unstructured) bool {
	clean := func(o *unstructured.Unstructured) map[string]any {
		c := Desired(graph.Object{Unstructured: o}, func(uid types.UID) (types.UID, bool) { return uid, true })
		unstructured.RemoveNestedField(c.Object, "status")
		metadata, _ := c.Object["metadata"].(map[string]any)
		for name, value := range metadata {
			if m, ok := value.(map[string]any); ok && len(m) == 0 {
				delete(metadata, name)
			}
		}
		return c.Object
	}
	return equality.Semantic.DeepEqual(clean(desired), clean(current))
}

// applied returns the field ownership that server-side apply depends on.
func applied(o *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation != metav1.ManagedFieldsOperationApply || e.Subresource != ""
	})
}

// sameOwnership reports whether the field ownership of all appliers is the same.
func sameOwnership(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(sorted(a), sorted(b), func(x, y metav1.ManagedFieldsEntry) bool {
		return x.Manager == y.Manager && x.APIVersion == y.APIVersion && equality.Semantic.DeepEqual(fields(x), fields(y))
	})
}

func sorted(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	return slices.SortedFunc(slices.Values(entries), func(a, b metav1.ManagedFieldsEntry) int {
		if a.Manager != b.Manager {
			if a.Manager < b.Manager {
				return -1
			}
			return 1
		}
		return 0
	})
}

func fields(e metav1.ManagedFieldsEntry) any {
	var v any
	if e.FieldsV1 != nil {
		// Field sets come from API servers; what cannot be parsed equals nothing.
		_ = json.Unmarshal(e.FieldsV1.GetRawBytes(), &v)
	}
	return v
}
