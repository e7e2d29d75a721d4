package machine

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
		return c.infrastructureMissing(ctx, m)
	}
	infra := contract.InfrastructureMachineOf(obj)
	ready, err := infra.Provisioned()
	if err != nil {
		return step.Done(), err
	}
	m.Status.Initialization.InfrastructureProvisioned = nil
	if ready {
		m.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	}
	result, err := reference.Readiness(infra.Object, ready, clusterv1.InfrastructureReadyV1Beta1Condition,
		clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason)
	if err != nil || !ready {
		return result, err
	}
	return result, copyInfrastructure(m, infra)
}

// infrastructureMissing waits for an infrastructure machine that does not exist yet. One that was ready and no longer exists is
// a terminal failure.
func (c *Controller) infrastructureMissing(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	ref := &m.Spec.InfrastructureRef
	if !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) {
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason), nil
	}
	kind, err := c.follow.Reader.Versions.Newest(ctx, ref.GroupKind())
	if err != nil {
		return step.Done(), err
	}
	older := m.GetV1Beta1Status()
	older.FailureReason = ptr.To("InvalidConfiguration")
	older.FailureMessage = ptr.To(fmt.Sprintf("Machine infrastructure resource %s with name %q has been deleted after being ready",
		kind, ref.Name))
	m.SetV1Beta1Status(older)
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
	m.Spec.ProviderID = id
	m.Status.Addresses = addresses
	if domain != nil {
		m.Spec.FailureDomain = *domain
	}
	return nil
}
