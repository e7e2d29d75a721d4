package machine

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/reference"
	"sigs.k8s.io/cluster-api/provider/step"
)

// bootstrap waits for the bootstrap provider and copies the name of the data Secret, once.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	ref := m.Spec.Bootstrap.ConfigRef
	if ref == nil {
		return step.Done().KeepCondition(), nil
	}
	obj, err := c.adoptObject(ctx, s, ref)
	switch {
	case err != nil:
		return step.Done(), err
	case m.Spec.Bootstrap.DataSecretName != nil:
		m.Status.BootstrapReady = true
		return step.Done(), nil
	case obj == nil:
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForDataSecretFallbackReason), nil
	}
	return c.copyBootstrap(m, contract.BootstrapOf(obj))
}

func (c *Controller) copyBootstrap(m *clusterv1.Machine, from contract.Bootstrap) (step.Result, error) {
	ready, err := from.Ready()
	if err != nil {
		return step.Done(), err
	}
	m.Status.BootstrapReady = ready
	result, err := reference.Readiness(from.Object, ready, clusterv1.BootstrapReadyCondition, clusterv1.WaitingForDataSecretFallbackReason)
	if err != nil || !ready {
		return result, err
	}
	name, err := from.DataSecretName()
	if err != nil {
		return result, err
	}
	if name == "" {
		return result, fmt.Errorf("%s %s/%s is ready but status.dataSecretName is empty: its provider must set it",
			from.GetKind(), from.GetNamespace(), from.GetName())
	}
	m.Spec.Bootstrap.DataSecretName = ptr.To(name)
	return result, nil
}
