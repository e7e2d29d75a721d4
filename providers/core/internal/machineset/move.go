package machineset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// handOver returns which of n surplus Machines to hand over to the set of the new template, and which to delete, because they are marked
// for it, broken, or could not be updated. Machines that have no Node yet or are being updated wait; they are among the n, so that no
// available Machine moves in their place.
func handOver(set *clusterv1.MachineSet, machines []*clusterv1.Machine, n int, now time.Time) (move, remove []*clusterv1.Machine) {
	ordered := toDelete(set, machines, len(machines), now)
	slices.SortStableFunc(ordered, func(a, b *clusterv1.Machine) int { return int(fateOf(a)) - int(fateOf(b)) })
	for _, m := range ordered[:min(n, len(ordered))] {
		switch fateOf(m) {
		case deleted:
			remove = append(remove, m)
		case moves:
			move = append(move, m)
		case gone, waits:
		}
	}
	return move, remove
}

// fate is what happens to a surplus Machine whose set hands over its Machines.
type fate int

const (
	gone fate = iota // It is being deleted.
	deleted
	waits
	moves
)

func fateOf(m *clusterv1.Machine) fate {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return gone
	case ownership.Marked(m), ownership.Broken(m), updateFailed(m):
		return deleted
	case inplace.IsUpdating(m), !m.Status.NodeRef.IsDefined():
		return waits
	}
	return moves
}

// updateFailed reports whether the last attempt of an extension to update a Machine failed.
func updateFailed(m *clusterv1.Machine) bool {
	c := report.Get(m, clusterv1.MachineUpdatingCondition)
	return inplace.IsUpdating(m) && c != nil && c.Reason == clusterv1.MachineInPlaceUpdateFailedReason
}

// target returns the MachineSet that takes over the Machines of a set, from the API server; nil if it is none of the same MachineDeployment
// that expects them.
func (c *Controller) target(ctx context.Context, set *clusterv1.MachineSet) (*clusterv1.MachineSet, error) {
	to := &clusterv1.MachineSet{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: set.Namespace, Name: inplace.MovesTo(set)}, to)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading MachineSet %s, which takes over Machines of MachineSet %s: %w", inplace.MovesTo(set), set.Name, err)
	}
	owner, own := metav1.GetControllerOf(to), metav1.GetControllerOf(set)
	if !to.DeletionTimestamp.IsZero() || owner == nil || own == nil || owner.UID != own.UID || !inplace.Receives(to, set.Name) {
		return nil, nil
	}
	return to, nil
}

// move hands a Machine over in one write, so that it always has exactly one controller. It must be unchanged since it was read.
func (c *Controller) move(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	to := s.change.target
	if err := c.Patch(ctx, m, func() {
		m.OwnerReferences = slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(r metav1.OwnerReference) bool { return r.UID == s.set.UID })
		m.OwnerReferences = append(m.OwnerReferences, ownership.Reference(to, clusterv1.GroupVersion.WithKind(machineSetKind), true))
		labels := maps.Clone(m.Labels)
		maps.Copy(labels, to.Spec.Selector.MatchLabels)
		if hash, ok := to.Labels[clusterv1.MachineDeploymentUniqueLabel]; ok {
			labels[clusterv1.MachineDeploymentUniqueLabel] = hash
		}
		m.Labels = labels
		inplace.MarkMoved(m)
	}, step.IfUnchanged); err != nil {
		return fmt.Errorf("moving Machine %s to MachineSet %s: %w", m.Name, to.Name, err)
	}
	s.machines = slices.DeleteFunc(slices.Clone(s.machines), func(other *clusterv1.Machine) bool { return other.Name == m.Name })
	step.Event(ctx, "SuccessfulMove", "Moved Machine %q to MachineSet %q, to be updated in place", m.Name, to.Name)
	return nil
}
