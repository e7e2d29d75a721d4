package machine

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/step"
)

// formers are the kinds that make bootstrap and infrastructure objects for Machines.
var formers = []string{"MachineSet", "KubeadmControlPlane"} //nolint:gochecknoglobals // a constant list

// bootstrap waits for the bootstrap provider's data and takes over the name of its Secret, once.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	ref := m.Spec.Bootstrap.ConfigRef
	if ref == nil {
		return step.Done(), nil
	}
	obj, err := c.follow.Follow(ctx, ref, m.Namespace)
	if err != nil {
		return step.Done(), err
	}
	if obj != nil {
		if err := c.follow.Own(ctx, obj, m, m.Spec.ClusterName, formers...); err != nil {
			return step.Done(), err
		}
		if err := reference.CopyFailure(contract.ObjectOf(obj), &m.Status.FailureReason, &m.Status.FailureMessage); err != nil {
			return step.Done(), err
		}
	}
	if m.Spec.Bootstrap.DataSecretName != nil {
		m.Status.BootstrapReady = true
		condition.Set(m, condition.True(clusterv1.BootstrapReadyCondition))
		return step.Done(), nil
	}
	if obj == nil {
		condition.Set(m, condition.False(clusterv1.BootstrapReadyCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForDataSecretFallbackReason, ""))
		return step.Wait(ref.Kind + " " + ref.Name + " to exist"), nil
	}
	return c.copyBootstrap(m, contract.BootstrapOf(obj))
}

func (c *Controller) copyBootstrap(m *clusterv1.Machine, from contract.Bootstrap) (step.Result, error) {
	ready, err := from.Ready()
	if err != nil {
		return step.Done(), err
	}
	if err := reference.Mirror(m, clusterv1.BootstrapReadyCondition, from.Object, condition.Fallback(ready, clusterv1.WaitingForDataSecretFallbackReason)); err != nil {
		return step.Done(), err
	}
	m.Status.BootstrapReady = ready
	if !ready {
		return step.Wait(from.GetKind() + " " + from.GetName() + " to be ready"), nil
	}
	name, err := from.DataSecretName()
	if err != nil {
		return step.Done(), err
	}
	if name == "" {
		return step.Done(), fmt.Errorf("%s %s/%s is ready but status.dataSecretName is empty: its provider must set it",
			from.GetKind(), from.GetNamespace(), from.GetName())
	}
	m.Spec.Bootstrap.DataSecretName = ptr.To(name)
	return step.Done(), nil
}
