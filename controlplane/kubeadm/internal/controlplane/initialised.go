package controlplane

import (
	"context"
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step"
)

// initialisedBackstop: kubeadm uploads its configuration before it labels the Node, whose event wakes us; ConfigMaps
// themselves are not watched. The deadline is for whoever bootstraps in another order.
const initialisedBackstop = 10 * time.Second

// initialised states, once and for all, that kubeadm init has completed.
func (c *Controller) initialised(ctx context.Context, s *scope) (step.Result, error) {
	if s.kcp.Status.Initialized {
		condition.Set(s.kcp, condition.True(controlplanev1.AvailableCondition))
		return step.Done(), nil
	}
	if !condition.Has(s.kcp, controlplanev1.AvailableCondition) {
		condition.Set(s.kcp, condition.False(controlplanev1.AvailableCondition, clusterv1.ConditionSeverityInfo,
			controlplanev1.WaitingForKubeadmInitReason, ""))
	}
	if s.workload == nil {
		return step.Done(), nil
	}
	uploaded, err := s.workload.KubeadmConfigExists(ctx)
	if err != nil {
		return step.Again(initialisedBackstop), fmt.Errorf("looking for kubeadm's configuration in the workload cluster: %w", err)
	}
	if !uploaded {
		return step.Again(initialisedBackstop), nil
	}
	s.kcp.Status.Initialized = true
	condition.Set(s.kcp, condition.True(controlplanev1.AvailableCondition))
	return step.Done(), nil
}
