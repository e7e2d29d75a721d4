package machinepool

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// infrastructure waits for the infrastructure provider and copies provider IDs, replicas and readiness.
func (c *Controller) infrastructure(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	obj, exists, err := c.adoptObject(ctx, s, &p.Spec.Template.Spec.InfrastructureRef)
	s.infrastructure = reference.FoundOf(obj, exists, err)
	if err != nil {
		return step.Done(), err
	}
	if !exists {
		return c.infrastructureMissing(ctx, p)
	}
	infra := contract.InfrastructureMachinePoolOf(obj)
	s.infra = &infra
	ready, err := infra.Provisioned()
	if err != nil {
		return step.Done(), err
	}
	p.Status.Initialization.InfrastructureProvisioned = unlessZero(ready)
	result, err := reference.Readiness(infra.Object, ready, clusterv1.InfrastructureReadyV1Beta1Condition,
		clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason)
	if err != nil {
		return result, err
	}
	before := p.Spec.ProviderIDList
	err = copyInfrastructure(p, infra)
	for _, id := range before {
		if !slices.Contains(p.Spec.ProviderIDList, id) {
			s.removedIDs = append(s.removedIDs, id)
		}
	}
	return result, err
}

// invalidConfiguration is the class of the failure that the infrastructure object is gone.
const invalidConfiguration = "InvalidConfiguration"

// infrastructureMissing waits for an infrastructure object that does not exist yet. One that was ready and no longer exists is a
// terminal failure; because users have to clear that, the API server decides.
func (c *Controller) infrastructureMissing(ctx context.Context, p *clusterv1.MachinePool) (step.Result, error) {
	ref := &p.Spec.Template.Spec.InfrastructureRef
	what := ref.Kind + " " + ref.Name
	if !ptr.Deref(p.Status.Initialization.InfrastructureProvisioned, false) {
		return step.Wait(what + " to exist").Because(clusterv1.IncorrectExternalRefV1Beta1Reason).Severity(clusterv1.ConditionSeverityError), nil
	}
	if _, err := c.live().Get(ctx, ref, p.Namespace); err == nil {
		return step.Done(), step.Stale("%s is not in the cache yet", what)
	} else if !apierrors.IsNotFound(err) {
		return step.Done(), err
	}
	kind, err := c.follow.Reader.Versions.Newest(ctx, ref.GroupKind())
	if err != nil {
		return step.Done(), err
	}
	older := p.GetV1Beta1Status()
	older.FailureReason = ptr.To(invalidConfiguration)
	older.FailureMessage = ptr.To(fmt.Sprintf("MachinePool infrastructure resource %s with name %q has been deleted after being ready",
		kind, ref.Name))
	p.SetV1Beta1Status(older)
	return step.Done(), step.Terminal(&step.Error{
		Reason: clusterv1.IncorrectExternalRefV1Beta1Reason,
		Err:    fmt.Errorf("%s was ready and no longer exists: delete the MachinePool to replace it", what),
	})
}

// copyInfrastructure copies provider IDs and replicas. An empty list of a pool with machines is not copied: the provider has not
// found out their IDs yet.
func copyInfrastructure(p *clusterv1.MachinePool, from contract.InfrastructureMachinePool) error {
	replicas, err := from.Replicas()
	if err != nil {
		return err
	}
	if replicas != nil {
		p.Status.Replicas = ptr.To(max(0, *replicas))
	}
	ids, err := providerIDs(from)
	if err != nil || len(ids) == 0 && ptr.Deref(p.Status.Replicas, 0) != 0 || slices.Equal(ids, p.Spec.ProviderIDList) {
		return err
	}
	p.Spec.ProviderIDList = ids
	setCounts(p, 0, 0, nil)
	return nil
}

// providerIDs returns the provider IDs of an infrastructure object, each once.
func providerIDs(of contract.InfrastructureMachinePool) ([]string, error) {
	ids, err := of.ProviderIDs()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("spec.providerIDList of %s %s/%s", of.GetKind(), of.GetNamespace(), of.GetName())
	if len(ids) > maxMachines {
		return nil, contract.Violated("%s has more than %d elements", what, maxMachines)
	}
	var out []string
	known := map[string]bool{}
	for i, id := range ids {
		switch {
		case id == "":
			return nil, contract.Violated("%s: element %d is empty", what, i)
		case len(id) > bounds.ProviderID:
			return nil, contract.Violated("%s: element %d is longer than %d characters", what, i, bounds.ProviderID)
		case !known[id]:
			known[id] = true
			out = append(out, id)
		}
	}
	return out, nil
}
