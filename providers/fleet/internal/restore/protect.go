package restore

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// blockMove is the annotation because of which clusterctl move waits.
	blockMove = "clusterctl.cluster.x-k8s.io/block-move"
	// deleteForMove is the annotation that clusterctl move sets on objects before it deletes them: they go on in another management cluster.
	deleteForMove = "clusterctl.cluster.x-k8s.io/delete-for-move"
)

// protect adds the finalizer, and what keeps the object here, while the restore works. When it has ended, an annotation says so: copies of
// the object that have no status, such as those of a move or a backup, must not restore again.
func protect(_ context.Context, s *scope) (step.Result, error) {
	r := s.restore
	if ended := r.Annotations[fleetv1.OperationEndedAnnotation]; ended != "" && !r.Ended() {
		r.Status.Phase = fleetv1.OperationPhase(ended)
	}
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	if r.Ended() {
		r.Annotations[fleetv1.OperationEndedAnnotation] = string(r.Status.Phase)
		delete(r.Annotations, blockMove)
		controllerutil.RemoveFinalizer(r, fleetv1.ControlPlaneRestoreFinalizer)
		return step.Stop(), nil
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	r.Labels[clusterv1.ClusterNameLabel] = naming.LabelValue(r.Spec.ClusterName)
	if s.begun(fleetv1.RestoreStepHold) {
		r.Annotations[blockMove] = ""
	}
	if !r.DeletionTimestamp.IsZero() {
		return step.Done(), nil
	}
	controllerutil.AddFinalizer(r, fleetv1.ControlPlaneRestoreFinalizer)
	return step.Checkpoint(), nil
}
