package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// collect lists the MachineSets of the deployment, and orphans that its selector matches: the write step adopts those.
// MachineSets that are being deleted do not count, because their Machines are deleted with them.
func (c *Controller) collect(ctx context.Context, s *scope) (step.Result, error) {
	return step.Done(), c.read(ctx, c.Client, s)
}

// read lists MachineSets and counts their Machines.
func (c *Controller) read(ctx context.Context, from client.Reader, s *scope) error {
	md := s.deployment
	selector, err := metav1.LabelSelectorAsSelector(&md.Spec.Selector)
	if err != nil {
		return step.Terminal(fmt.Errorf("spec.selector of MachineDeployment %s: %w", md.Name, err))
	}
	list := &clusterv1.MachineSetList{}
	if err := from.List(ctx, list, ownership.InCluster(md.Namespace, md.Spec.ClusterName)); err != nil {
		return fmt.Errorf("listing MachineSets: %w", err)
	}
	var sets []*clusterv1.MachineSet
	names := map[string]bool{}
	for i := range list.Items {
		set := &list.Items[i]
		names[set.Name] = true
		if set.DeletionTimestamp.IsZero() && owns(md, selector, set) {
			sets = append(sets, set)
		}
	}
	slices.SortFunc(sets, byAge)
	tallies, machines, err := c.count(ctx, from, md, sets)
	if err != nil {
		return err
	}
	s.sets, s.names, s.tallies, s.machines, s.listed = sets, names, tallies, machines, true
	return nil
}

// count counts the Machines of MachineSets, and returns them. It does not use the status of the MachineSets, which may be outdated.
func (c *Controller) count(
	ctx context.Context, from client.Reader, md *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet,
) (map[types.UID]*machineset.Tally, []*clusterv1.Machine, error) {
	tallies := map[types.UID]*machineset.Tally{}
	minReady := map[types.UID]time.Duration{}
	for _, set := range sets {
		tallies[set.UID], minReady[set.UID] = &machineset.Tally{}, machineset.MinReady(set)
	}
	if len(sets) == 0 {
		return tallies, nil, nil
	}
	list := &clusterv1.MachineList{}
	if err := from.List(ctx, list, ownership.InCluster(md.Namespace, md.Spec.ClusterName), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing Machines: %w", err)
	}
	var machines []*clusterv1.Machine
	now := c.Clock.Now()
	for i := range list.Items {
		owner := metav1.GetControllerOf(&list.Items[i])
		if owner == nil || tallies[owner.UID] == nil {
			continue
		}
		tallies[owner.UID].Add(&list.Items[i], minReady[owner.UID], now)
		machines = append(machines, &list.Items[i])
	}
	return tallies, machines, nil
}

// owns reports whether the deployment controls a MachineSet or may adopt it.
func owns(md *clusterv1.MachineDeployment, selector labels.Selector, set *clusterv1.MachineSet) bool {
	if owner := metav1.GetControllerOf(set); owner != nil {
		return owner.UID == md.UID
	}
	return !selector.Empty() && selector.Matches(labels.Set(set.Labels))
}

// byAge sorts the oldest first. Creation times have a resolution of one second; within a second, revisions decide.
func byAge(a, b *clusterv1.MachineSet) int {
	return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time),
		cmp.Compare(revision(a.Annotations), revision(b.Annotations)), cmp.Compare(a.Name, b.Name))
}
