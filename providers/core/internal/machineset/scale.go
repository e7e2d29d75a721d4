package machineset

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// preflightBackstop is the delay before failed preflight checks run again. Control planes are watched only through their Cluster,
// which does not reflect every change.
const preflightBackstop = 15 * time.Second

// maxCreated is how many Machines one reconcile creates. The next one reads the MachineSet again, so that a mistaken number can be
// corrected before all Machines exist.
const maxCreated = 500

// scale creates or deletes the Machines that confirm decided on.
func (c *Controller) scale(ctx context.Context, s *scope) (step.Result, error) {
	for _, m := range s.change.delete {
		s.report(c.delete(ctx, m))
	}
	for _, m := range s.change.move {
		s.report(c.move(ctx, s, m))
	}
	c.scaleUp(ctx, s)
	c.names.observe(s.set.UID, s.generation, s.machines)
	if s.set.Spec.Replicas != nil && len(s.machines) == int(max(0, *s.set.Spec.Replicas)) && !s.incomplete {
		condition.Set(s.set, condition.True(clusterv1.MachinesCreatedV1Beta1Condition))
	}
	if s.change.more {
		return step.Again(time.Millisecond), nil
	}
	return step.Done(), nil
}

func (c *Controller) scaleUp(ctx context.Context, s *scope) {
	var created []client.Object
	for range s.change.create {
		m, err := c.create(ctx, s)
		if err != nil {
			s.incomplete = true
			s.report(err)
			break
		}
		s.machines, created = append(s.machines, m), append(created, m)
		objects, err := c.createObjects(ctx, s, m)
		created = append(created, objects...)
		s.report(err)
	}
	c.AwaitVisible(ctx, created...)
}

// create creates a Machine with the first free ordinal.
func (c *Controller) create(ctx context.Context, s *scope) (*clusterv1.Machine, error) {
	name, err := c.freeName(ctx, s)
	if err != nil {
		return nil, err
	}
	desired := newMachine(s.set, name, s.generation)
	if desired.Spec.FailureDomain, err = nextDomain(s.set, s.cluster, s.machines); err != nil {
		return nil, failed(s, err)
	}
	if c.namedAfterTemplates {
		desired.Spec.InfrastructureRef.Name = naming.OfTemplate(s.set.Spec.Template.Spec.InfrastructureRef.Name, name)
	}
	m, err := c.apply(ctx, nil, desired)
	if err != nil {
		step.Warning(ctx, "FailedCreate", "Failed to create Machine %q: %v", name, err)
		return nil, fmt.Errorf("creating Machine %s: %w", name, failed(s, err))
	}
	if !metav1.IsControlledBy(m, s.set) || !m.DeletionTimestamp.IsZero() {
		return nil, step.Stale("Machine %s already exists, but is not in the cache yet", name)
	}
	step.Event(ctx, "SuccessfulCreate", "Created Machine %q", m.Name)
	return m, nil
}

// failed reports in a condition why a Machine is not created, and returns the error.
func failed(s *scope, err error) error {
	condition.Set(s.set, condition.False(clusterv1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError,
		clusterv1.MachineCreationFailedV1Beta1Reason, "%v", err))
	return err
}

// freeName returns the name of the smallest ordinal that no Machine has, including Machines that left the set because their
// labels were changed. Any other Machine of the set that has the name was not there when Machines were listed: in the cache, or if
// another leader has created it since.
func (c *Controller) freeName(ctx context.Context, s *scope) (string, error) {
	taken := map[string]bool{}
	for _, m := range s.machines {
		taken[m.Name] = true
	}
	previous := ""
	for ordinal := 0; ; ordinal++ {
		name, err := nameOf(s.set, s.generation, ordinal)
		switch {
		case err != nil:
			return "", err
		case taken[name] && name == previous:
			return "", step.Terminal(fmt.Errorf("spec.machineNaming.template of MachineSet %s gives several Machines the name %s: "+
				"it must contain {{ .random }}", s.set.Name, name))
		case taken[name]:
			previous = name
			continue
		}
		found := &clusterv1.Machine{}
		err = c.Client.Get(ctx, client.ObjectKey{Namespace: s.set.Namespace, Name: name}, found)
		if apierrors.IsNotFound(err) {
			return name, nil
		}
		if err != nil {
			return "", fmt.Errorf("reading Machine %s: %w", name, err)
		}
		if !s.live || belongs(found, s.set) {
			return "", step.Stale("Machine %s was created after Machines were listed", name)
		}
	}
}

// delete deletes a Machine if it is unchanged since it was read: otherwise another one may have to be deleted.
func (c *Controller) delete(ctx context.Context, m *clusterv1.Machine) error {
	if err := c.Delete(ctx, m); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedDelete", "Failed to delete Machine %q: %v", m.Name, err)
		}
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	step.Event(ctx, "SuccessfulDelete", "Deleted Machine %q", m.Name)
	return nil
}
