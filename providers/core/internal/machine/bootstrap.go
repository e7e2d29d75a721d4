package machine

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// bootstrap waits for the bootstrap provider and copies the name of the data Secret, once.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	ref := &m.Spec.Bootstrap.ConfigRef
	if !ref.IsDefined() {
		return step.Done().KeepCondition(), nil
	}
	obj, exists, err := c.adoptObject(ctx, s, ref)
	s.found.bootstrap = reference.FoundOf(obj, exists, err)
	switch {
	case err != nil:
		return step.Done(), err
	case m.Spec.Bootstrap.DataSecretName != nil:
		m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true)
		return step.Done(), nil
	case !exists:
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForDataSecretFallbackV1Beta1Reason), nil
	}
	return reference.CopyBootstrap(contract.BootstrapOf(obj), &m.Status.Initialization.BootstrapDataSecretCreated, &m.Spec.Bootstrap)
}
