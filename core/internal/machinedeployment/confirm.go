package machinedeployment

import (
	"context"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// staleBackstop is how long until the API server is asked again while the cache is behind it. Usually an event comes first.
const staleBackstop = 10 * time.Second

// confirm plans once more on what the API server has, if a MachineSet has to be written. What a cache shows may be a minute
// old: a MachineSet that was lowered since would be raised again, one that exists would be made a second time, and Machines
// would be given up for others that are not available any more. That is three reads each time something is written, and none
// otherwise.
//
// The first MachineSet costs one: if the topology controller wrote the MachineDeployment a moment ago, its cached copy is no
// older than that answer. One that has a revision had a MachineSet before, and may be gone together with it: it is read.
// Whether there are MachineSets is always asked: those of a MachineDeployment that was moved, restored or made again have
// names that do not collide with the one to be made.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	var err error
	if s.pending, err = c.differs(ctx, s); err != nil || !s.pending {
		return step.Done(), err
	}
	first := len(s.sets) == 0 && s.deployment.Annotations[clusterv1.RevisionAnnotation] == ""
	if err := c.read(ctx, c.Live, s); err != nil {
		return step.Done(), err
	}
	// Asked last: the answer to a write may reach us after the event of it.
	if !first || len(s.sets) > 0 || !c.Recent.Shown(s.deployment) {
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

// confirmDeployment compares the MachineDeployment with the API server. If it is not what the cache shows, nothing is pending.
func (c *Controller) confirmDeployment(ctx context.Context, s *scope) (step.Result, error) {
	md := &clusterv1.MachineDeployment{}
	err := c.Live.Get(ctx, client.ObjectKeyFromObject(s.deployment), md)
	if err != nil && !apierrors.IsNotFound(err) {
		return step.Done(), fmt.Errorf("reading MachineDeployment %s from the API server: %w", s.deployment.Name, err)
	}
	if err != nil || !same(md, s.deployment) {
		s.pending = false
		return step.WaitAtMost(staleBackstop, "the cache to show MachineDeployment "+s.deployment.Name+" as it is"), nil
	}
	return step.Done(), nil
}

// same is whether a MachineDeployment is the one that the cache shows. Its revision does not matter: the MachineSets tell it.
func same(live, cached *clusterv1.MachineDeployment) bool {
	of := func(md *clusterv1.MachineDeployment) map[string]string {
		out := maps.Clone(md.Annotations)
		delete(out, clusterv1.RevisionAnnotation)
		return out
	}
	return live.UID == cached.UID && live.DeletionTimestamp.IsZero() && live.Generation == cached.Generation && maps.Equal(of(live), of(cached))
}

// differs is whether a MachineSet is not what the deployment says.
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
