package machinedeployment

import (
	"context"
	"maps"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm repeats the plan on data from the API server if a MachineSet has to be written. The cache may be a minute old: the
// controller would scale a MachineSet up that was scaled down meanwhile, create a second MachineSet for a template, or delete
// Machines in favor of others that are no longer available. That costs four reads whenever something is written, and none
// otherwise.
//
// The first MachineSet costs one read: if this manager wrote the MachineDeployment and its Cluster a moment ago, the cached copies
// are not older than the responses. A MachineDeployment with a revision had a MachineSet before, and may have been deleted together
// with it: it is read. MachineSets are always listed: after a move, a restore or a recreation of the MachineDeployment, the names
// of existing MachineSets do not conflict with the new one.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	var err error
	if s.pending, err = c.differs(ctx, s); err != nil || !s.pending {
		return step.Done(), err
	}
	first := len(s.sets) == 0 && s.deployment.Annotations[clusterv1.RevisionAnnotation] == ""
	if err := c.read(ctx, c.Live, s); err != nil {
		return step.Done(), err
	}
	// This comes last: the response to a write may arrive after its event.
	result, err := c.latest(ctx, s, first && len(s.sets) == 0)
	if err != nil || result.Ends() {
		s.pending = false
		return result, err
	}
	result, err = c.choose(ctx, s)
	if err != nil {
		return result, err
	}
	if asked, err := c.ask(ctx, s); err != nil || asked.Ends() {
		s.pending = false
		return asked, err
	}
	if _, err := c.plan(ctx, s); err != nil {
		return result, err
	}
	s.pending, err = c.differs(ctx, s)
	return result, err
}

// latest waits if the cached MachineDeployment or Cluster are outdated. For the first MachineSet, those that this manager wrote a
// moment ago are not read.
func (c *Controller) latest(ctx context.Context, s *scope, first bool) (step.Result, error) {
	var reads []step.Read
	if !first || !c.Recent.UpToDate(s.deployment) {
		reads = append(reads, step.Reread(s.deployment, &clusterv1.MachineDeployment{}, same))
	}
	if !first || !c.Recent.UpToDate(s.cluster) {
		reads = append(reads, step.Reread(s.cluster, &clusterv1.Cluster{}, nil))
	}
	return c.Latest(ctx, reads...)
}

// same reports whether two versions of a MachineDeployment lead to the same plan. It ignores the revision, which derives from the
// MachineSets.
func same(live, cached *clusterv1.MachineDeployment) bool {
	annotations := func(md *clusterv1.MachineDeployment) map[string]string {
		out := maps.Clone(md.Annotations)
		delete(out, clusterv1.RevisionAnnotation)
		return out
	}
	return live.Generation == cached.Generation && maps.Equal(annotations(live), annotations(cached))
}

// differs reports whether a MachineSet has to be created or updated.
func (c *Controller) differs(ctx context.Context, s *scope) (bool, error) {
	if s.current == nil && !ptr.Deref(s.deployment.Spec.Paused, false) {
		return true, nil
	}
	for _, set := range s.sets {
		if differs, err := c.sets.differs(ctx, set, s.desired(set, s.targets[set.Name])); differs || err != nil {
			return differs, err
		}
	}
	return false, nil
}
