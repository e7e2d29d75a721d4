package rollout

import (
	"context"

	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// identify gives the rollout its ID before the first entry of a Cluster refers to it. A rollout that has ended stays as it is: a copy
// without its status, by a move or from a backup, too.
func identify(_ context.Context, s *scope) (step.Result, error) {
	r := s.rollout
	if phase := r.Annotations[fleetv1.OperationEndedAnnotation]; phase != "" && r.Status.Phase == "" {
		r.Status.Phase = fleetv1.RolloutPhase(phase)
	}
	if r.Ended() && (r.Status.Phase == fleetv1.RolloutAborted || r.Status.ObservedGeneration == r.Generation || r.Status.Plan == nil) {
		return step.Stop(), nil
	}
	if r.Annotations[fleetv1.RolloutIDAnnotation] != "" {
		return step.Done(), nil
	}
	annotate(r, fleetv1.RolloutIDAnnotation, string(r.UID))
	return step.Checkpoint(), nil
}

func annotate(r *fleetv1.ClusterRollout, key, value string) {
	if r.Annotations == nil {
		r.Annotations = map[string]string{}
	}
	r.Annotations[key] = value
}

func includesNew(r *fleetv1.ClusterRollout) bool { return ptr.Deref(r.Spec.IncludeNew, false) }
