package machinepool

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// createMachines creates the missing Machines. Because a cache may lack a deletion, it reads Cluster, pool and infrastructure
// machines from the API server first, and each Machine before it creates it: three reads, and one for each new Machine.
func (c *Controller) createMachines(ctx context.Context, s *scope) (step.Result, error) {
	missing := s.missing(s.infraMachines)
	if len(missing) == 0 || !s.infra.GetDeletionTimestamp().IsZero() || !s.cluster.DeletionTimestamp.IsZero() {
		return step.Done(), nil
	}
	if result, err := c.latest(ctx, s); err != nil || result.Ends() {
		return result, err
	}
	live, err := c.infraMachines(ctx, c.Live, s)
	if err != nil {
		return step.Done(), err
	}
	exists := map[string]bool{}
	for _, infra := range s.missing(live) {
		exists[infra.GetName()] = true
	}
	var created []client.Object
	for _, infra := range missing {
		if !exists[infra.GetName()] {
			continue
		}
		m, err := c.createMachine(ctx, s, infra)
		if err != nil {
			s.report(err)
			continue
		}
		created = append(created, m)
	}
	c.AwaitVisible(ctx, created...)
	return step.Done(), nil
}

// missing returns the infrastructure machines that need a Machine: those without one that are not being deleted.
func (s *scope) missing(infraMachines []*unstructured.Unstructured) []*unstructured.Unstructured {
	existing := s.byInfraMachine()
	var out []*unstructured.Unstructured
	for _, infra := range infraMachines {
		if existing[infra.GetName()] == nil && infra.GetDeletionTimestamp().IsZero() {
			out = append(out, infra)
		}
	}
	return out
}

// createMachine creates the Machine of an infrastructure machine, unless another object has its name or controls the infrastructure
// machine: users can set the label of the pool on any object.
func (c *Controller) createMachine(ctx context.Context, s *scope, infra *unstructured.Unstructured) (*clusterv1.Machine, error) {
	what := fmt.Sprintf("%s %s has label %s of MachinePool %s", infra.GetKind(), infra.GetName(), clusterv1.MachinePoolNameLabel, s.pool.Name)
	if owner := metav1.GetControllerOf(infra); owner != nil && owner.Kind == clusterv1.MachineKind && owner.Name != infra.GetName() {
		return nil, fmt.Errorf("%s, but is controlled by %s %s: remove the label", what, owner.Kind, owner.Name)
	}
	m := &clusterv1.Machine{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(infra), m)
	switch {
	case err == nil && metav1.IsControlledBy(m, s.pool):
		return nil, step.Stale("Machine %s already exists, but is not in the cache yet", m.Name)
	case err == nil:
		return nil, fmt.Errorf("%s, but Machine %s does not belong to the pool: remove the label, or delete the Machine", what, m.Name)
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading Machine %s: %w", infra.GetName(), err)
	}
	m, err = c.apply(ctx, nil, newMachine(s, infra))
	if err != nil {
		step.Warning(ctx, "FailedCreate", "Failed to create Machine %q: %v", infra.GetName(), err)
		return nil, fmt.Errorf("creating Machine %s: %w", infra.GetName(), err)
	}
	step.Event(ctx, "SuccessfulCreate", "Created Machine %q", m.Name)
	return m, nil
}
