package rollout

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// record puts the numbers into the status.
func record(_ context.Context, s *scope) (step.Result, error) {
	d, status := s.decision, &s.rollout.Status
	if d == nil {
		if s.planned() == "" && !s.rollout.Ended() {
			status.Phase = fleetv1.RolloutPlanning
		}
		return step.Done(), nil
	}
	status.Phase, status.Stages = d.Phase, d.Stages
	for i := range status.Stages {
		status.Stages[i].ApprovedBy = s.approver(status.Stages[i].Name)
	}
	status.Clusters, status.Done, status.Failed = ptr.To(int32(len(s.members))), ptr.To(int32(d.Done)), ptr.To(int32(d.Failed))
	if ended(d) == "" {
		status.CompletionTime = nil
		return step.Done(), nil
	}
	if status.CompletionTime == nil {
		status.CompletionTime = &metav1.Time{Time: s.now}
	}
	annotate(s.rollout, fleetv1.OperationEndedAnnotation, string(d.Phase))
	return step.Done(), nil
}
