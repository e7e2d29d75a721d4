package machineset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// collect lists the Machines of the set and adopts orphans that its selector matches, unless they are being deleted.
func (c *Controller) collect(ctx context.Context, s *scope) (step.Result, error) {
	own, orphans, err := list(ctx, c.Client, s.set)
	if err != nil {
		return step.Done(), err
	}
	s.machines, s.moved = split(s.set, own)
	s.listed = true
	for _, m := range orphans {
		if err := c.adoptMachine(ctx, s.set, m); err != nil {
			s.orphans++
			s.report(err)
			continue
		}
		s.machines = append(s.machines, m)
	}
	slices.SortFunc(s.machines, byName)
	return step.Done(), nil
}

// list returns the Machines of a set, sorted by name, and the orphans that it has to adopt.
func list(ctx context.Context, from client.Reader, set *clusterv1.MachineSet) (own, orphans []*clusterv1.Machine, err error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, nil, step.Terminal(fmt.Errorf("spec.selector of MachineSet %s: %w", set.Name, err))
	}
	// The selector of a user may match Machines of other Clusters, too.
	all := &clusterv1.MachineList{}
	if err := from.List(ctx, all, client.MatchingLabelsSelector{Selector: selector},
		ownership.InCluster(set.Namespace, set.Spec.ClusterName)); err != nil {
		return nil, nil, fmt.Errorf("listing the Machines of MachineSet %s: %w", set.Name, err)
	}
	for i := range all.Items {
		m := &all.Items[i]
		switch owner := metav1.GetControllerOf(m); {
		case owner == nil && m.DeletionTimestamp.IsZero():
			orphans = append(orphans, m)
		case owner != nil && owner.UID == set.UID:
			own = append(own, m)
		}
	}
	slices.SortFunc(own, byName)
	return own, orphans, nil
}

// split splits the Machines of a set into those that count as replicas, and those that another set has handed over and that spec.replicas
// does not include yet.
func split(set *clusterv1.MachineSet, own []*clusterv1.Machine) (replicas, moved []*clusterv1.Machine) {
	for _, m := range own {
		if m.DeletionTimestamp.IsZero() && inplace.IsMoved(m) && !inplace.IsAcknowledged(set, m) {
			moved = append(moved, m)
		} else {
			replicas = append(replicas, m)
		}
	}
	return replicas, moved
}

// belongs reports whether list would return a Machine among those of the set.
func belongs(m *clusterv1.Machine, set *clusterv1.MachineSet) bool {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	return err == nil && metav1.IsControlledBy(m, set) && selector.Matches(labels.Set(m.Labels)) &&
		m.Labels[clusterv1.ClusterNameLabel] == set.Spec.ClusterName
}

func byName(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) }

func (c *Controller) adoptMachine(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine) error {
	owned := m.DeepCopy()
	if _, err := ownership.EnsureController(owned,
		ownership.Reference(set, clusterv1.GroupVersion.WithKind(machineSetKind), true)); err != nil {
		return err
	}
	if err := c.Patch(ctx, m, func() { m.OwnerReferences = owned.OwnerReferences }, step.IfUnchanged); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedAdopt", "Failed to adopt Machine %q: %v", m.Name, err)
		}
		return fmt.Errorf("adopting Machine %s: %w", m.Name, err)
	}
	c.Recent.Forget(set) // creating Machines is no longer sure to be a conflict: see collides
	step.Event(ctx, "SuccessfulAdopt", "Adopted Machine %q", m.Name)
	return nil
}

func labelsOf(m *clusterv1.Machine) labels.Set { return labels.Set(m.Labels) }
