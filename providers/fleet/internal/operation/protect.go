package operation

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// BlockMoveAnnotation is the annotation because of which clusterctl move waits.
const BlockMoveAnnotation = "clusterctl.cluster.x-k8s.io/block-move"

// Protection says how an operation is protected.
type Protection struct {
	// Finalizer is on the object until the operation has ended, and Cluster the name of its Cluster, for the label.
	Finalizer, Cluster string
	// Stays is whether the object must not be moved to another management cluster now.
	Stays bool
	// Holds is whether the control plane is still held although the operation has ended, until the object is deleted.
	Holds bool
}

// Protect is the first step of an operation. phase is the field of its status. It adds label and finalizer, which are in the API server
// before the next step. When the operation has ended, an annotation says so, and no other step is taken: copies of the object that have no
// status, such as those of a move or a backup, must not operate again.
func Protect(o client.Object, phase *fleetv1.OperationPhase, p Protection) step.Result {
	annotations, labels := maps.Clone(o.GetAnnotations()), maps.Clone(o.GetLabels())
	if annotations == nil {
		annotations = map[string]string{}
	}
	if labels == nil {
		labels = map[string]string{}
	}
	if was := fleetv1.OperationPhase(annotations[fleetv1.OperationEndedAnnotation]); Ended(was) && !Ended(*phase) {
		*phase = was
	}
	if labels[clusterv1.ClusterNameLabel] == "" {
		labels[clusterv1.ClusterNameLabel] = naming.LabelValue(p.Cluster)
	}
	delete(annotations, BlockMoveAnnotation)
	if Ended(*phase) {
		annotations[fleetv1.OperationEndedAnnotation] = string(*phase)
	}
	if p.Holds || p.Stays && !Ended(*phase) {
		annotations[BlockMoveAnnotation] = ""
	}
	o.SetAnnotations(annotations)
	o.SetLabels(labels)
	if Ended(*phase) {
		if !p.Holds {
			controllerutil.RemoveFinalizer(o, p.Finalizer)
		}
		return step.Stop()
	}
	if !o.GetDeletionTimestamp().IsZero() {
		return step.Done()
	}
	controllerutil.AddFinalizer(o, p.Finalizer)
	return step.Checkpoint()
}

// Ended reports whether an operation in a phase is over.
func Ended(phase fleetv1.OperationPhase) bool {
	return phase == fleetv1.OperationPhaseCompleted || phase == fleetv1.OperationPhaseFailed
}
