package machinedeployment

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// staleBackstop bounds the wait for a stale cache. Usually an event comes first.
const staleBackstop = 10 * time.Second

// confirm repeats the plan on data from the API server if a MachineSet has to be written. The cache may be a minute old: the
// controller would scale a MachineSet up that was scaled down meanwhile, create a second MachineSet for a template, or delete
// Machines in favor of others that are no longer available. That costs three reads whenever something is written, and none
// otherwise.
//
// The first MachineSet costs one read: if the topology controller wrote the MachineDeployment a moment ago, the cached copy is
// not older than the response. A MachineDeployment with a revision had a MachineSet before, and may have been deleted together
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
	if !first || len(s.sets) > 0 || !c.Recent.UpToDate(s.deployment) {
		if result, err := c.confirmDeployment(ctx, s); !s.pending || err != nil {
			return result, err
		}
	}
	result, err := c.choose(ctx, s)
	if err != nil {
		return result, err
	}
	if _, err := c.plan(ctx, s); err != nil {
		return result, err
	}
	s.pending, err = c.differs(ctx, s)
	return result, err
}

// confirmDeployment compares the cached MachineDeployment with the API server. If they differ, it clears pending and waits.
func (c *Controller) confirmDeployment(ctx context.Context, s *scope) (step.Result, error) {
	md := &clusterv1.MachineDeployment{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.deployment), md)
	if err != nil && !apierrors.IsNotFound(err) {
		return step.Done(), fmt.Errorf("reading MachineDeployment %s from the API server: %w", s.deployment.Name, err)
	}
	if err != nil || !same(md, s.deployment) {
		s.pending = false
		return step.WaitAtMost(staleBackstop, "the cache to catch up with MachineDeployment "+s.deployment.Name), nil
	}
	return step.Done(), nil
}

// same reports whether the cached MachineDeployment is up to date. It ignores the revision, which derives from the MachineSets.
func same(live, cached *clusterv1.MachineDeployment) bool {
	annotations := func(md *clusterv1.MachineDeployment) map[string]string {
		out := maps.Clone(md.Annotations)
		delete(out, clusterv1.RevisionAnnotation)
		return out
	}
	return live.UID == cached.UID && live.DeletionTimestamp.IsZero() && live.Generation == cached.Generation && maps.Equal(annotations(live), annotations(cached))
}

// differs reports whether a MachineSet has to be created or updated.
func (c *Controller) differs(ctx context.Context, s *scope) (bool, error) {
	if s.current == nil && !s.deployment.Spec.Paused {
		return true, nil
	}
	for _, set := range s.sets {
		if differs, err := c.sets.differs(ctx, set, s.desired(set, s.targets[set.Name])); differs || err != nil {
			return differs, err
		}
	}
	return false, nil
}
