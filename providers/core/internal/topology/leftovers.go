package topology

import (
	"context"
	"time"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// recheckInterval is when leftovers runs again while MachineSets or MachineDeployments are being deleted: no event reports
// when they are gone. Their templates are deleted with them, unless their MachineDeployment still referred to these then.
const recheckInterval = 10 * time.Second

// leftovers plans to delete templates that an earlier reconcile replaced but did not delete, because it was interrupted, or
// because a MachineSet was deleted before its MachineDeployment referred to other templates.
//
// It runs until none are left, and again after a reconcile that failed or changed an object: nothing else creates any.
func (c *Controller) leftovers(ctx context.Context, s *scope) (step.Result, error) {
	if _, clean := c.clean.Load(s.cluster.UID); clean {
		return step.Done(), nil
	}
	unused, recheck, err := c.Planner.UnusedTemplates(ctx, s.cluster, s.plan)
	if err != nil {
		return step.Done(), err
	}
	s.recheck = s.recheck || recheck
	if len(unused) == 0 {
		return recheckLeftovers(s), nil
	}
	s.plan.Deletions = append(s.plan.Deletions, unused...)
	return c.waitIfOutdated(ctx, s)
}

// recheckLeftovers schedules the next reconcile if templates may be left over that cannot be deleted yet.
func recheckLeftovers(s *scope) step.Result {
	if s.recheck {
		return step.Again(recheckInterval)
	}
	return step.Done()
}

// recordLeftovers records whether the next reconcile has to look for leftovers.
func (c *Controller) recordLeftovers(s *scope, err error) {
	if err != nil || s.recheck || s.stale || len(s.done.updated) > 0 {
		c.clean.Delete(s.cluster.UID)
		return
	}
	c.clean.Store(s.cluster.UID, struct{}{})
}
