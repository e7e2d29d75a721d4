package inplace

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// hook is the name of the hook that is pending while a Machine is updated.
const hook = "UpdateMachine"

// IsMarked reports whether an object has the mark of Machines that are updated in place and their objects.
func IsMarked(obj client.Object) bool {
	_, ok := obj.GetAnnotations()[clusterv1.UpdateInProgressAnnotation]
	return ok
}

// Mark marks an object.
func Mark(obj client.Object) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.UpdateInProgressAnnotation] = ""
	obj.SetAnnotations(annotations)
}

// Unmark removes the mark from an object.
func Unmark(obj client.Object) {
	annotations := obj.GetAnnotations()
	delete(annotations, clusterv1.UpdateInProgressAnnotation)
	obj.SetAnnotations(annotations)
}

// IsPending reports whether the extension is to update a Machine: its owner has written all that is desired.
func IsPending(m *clusterv1.Machine) bool { return extension.IsPending(m, hook) }

// MarkPending records that the extension is to update a Machine.
func MarkPending(m *clusterv1.Machine) { extension.MarkPending(m, hook) }

// IsUpdating reports whether a Machine is being updated in place, by any of its marks.
func IsUpdating(m *clusterv1.Machine) bool { return IsMarked(m) || IsPending(m) }

// End removes all marks of a Machine.
func End(m *clusterv1.Machine) {
	Unmark(m)
	extension.MarkCalled(m, hook)
}
