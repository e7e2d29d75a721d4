package machine

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits for the infrastructure provider and copies the state of the infrastructure machine.
func (c *Controller) infrastructure(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	obj, exists, err := c.adoptObject(ctx, s, &m.Spec.InfrastructureRef)
	s.found.infrastructure = reference.FoundOf(obj, exists, err)
	if err != nil {
		return step.Done(), err
	}
	if !exists {
		return c.infrastructureMissing(m)
	}
	infra := contract.InfrastructureMachineOf(obj)
	ready, err := infra.Provisioned()
	if err != nil {
		return step.Done(), err
	}
	m.Status.InfrastructureReady = ready
	result, err := reference.Readiness(infra.Object, ready, clusterv1.InfrastructureReadyCondition,
		clusterv1.WaitingForInfrastructureFallbackReason)
	if err != nil || !ready {
		return result, err
	}
	return result, copyInfrastructure(m, infra)
}

// infrastructureMissing waits for an infrastructure machine that does not exist yet. One that was ready and no longer exists is
// a terminal failure.
func (c *Controller) infrastructureMissing(m *clusterv1.Machine) (step.Result, error) {
	ref := m.Spec.InfrastructureRef
	if !m.Status.InfrastructureReady {
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForInfrastructureFallbackReason), nil
	}
	m.Status.FailureReason = ptr.To(clusterv1.InvalidConfigurationMachineError)
	m.Status.FailureMessage = ptr.To(fmt.Sprintf("Machine infrastructure resource %s with name %q has been deleted after being ready",
		ref.GroupVersionKind(), ref.Name))
	return step.Done(), step.Terminal(fmt.Errorf("%s %s was ready and no longer exists: delete the Machine to replace it", ref.Kind, ref.Name))
}

func copyInfrastructure(m *clusterv1.Machine, from contract.InfrastructureMachine) error {
	id, err := from.ProviderID()
	if err != nil {
		return err
	}
	if id == "" {
		return contract.Violated("%s %s/%s is ready but spec.providerID is empty: its provider must set it",
			from.GetKind(), from.GetNamespace(), from.GetName())
	}
	if len(id) > bounds.ProviderID {
		return contract.Violated("spec.providerID of %s %s/%s is longer than %d characters",
			from.GetKind(), from.GetNamespace(), from.GetName(), bounds.ProviderID)
	}
	addresses, err := from.Addresses()
	if err != nil {
		return err
	}
	domain, err := from.FailureDomain()
	if err != nil {
		return err
	}
	if len(ptr.Deref(domain, "")) > bounds.Token {
		return contract.Violated("spec.failureDomain of %s %s/%s is longer than %d characters",
			from.GetKind(), from.GetNamespace(), from.GetName(), bounds.Token)
	}
	m.Spec.ProviderID = ptr.To(id)
	m.Status.Addresses = addresses
	if domain != nil {
		m.Spec.FailureDomain = domain
	}
	return nil
}
