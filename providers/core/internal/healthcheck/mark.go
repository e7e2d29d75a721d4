package healthcheck

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// mark writes the conditions of the Machines whose health changed, one patch for each, and waits until the cache has them: a reconcile
// without them would read everything from the API servers again.
func (c *Controller) mark(ctx context.Context, s *scope) (step.Result, error) {
	var written []client.Object
	var errs []error
	for _, m := range s.plan.Marks() {
		machine := m.Machine.DeepCopy()
		before := step.AsRead(machine)
		for _, now := range m.Set {
			condition.Set(machine, now)
		}
		for _, t := range m.Remove {
			condition.Delete(machine, t)
		}
		report.Set(machine, machine.Generation, c.Clock.Now(), m.Reports...)
		if err := c.save(ctx, machine, before, m); err != nil {
			errs = append(errs, fmt.Errorf("marking Machine %s: %w", machine.Name, err))
			continue
		}
		written = append(written, machine)
	}
	c.AwaitVisible(ctx, written...)
	return step.Done(), errors.Join(errs...)
}

// save writes conditions if the Machine is as it was diagnosed: the diagnosis may be outdated otherwise.
func (c *Controller) save(ctx context.Context, machine *clusterv1.Machine, before step.ConditionsAsRead, m diagnosis.Mark) error {
	err := c.SaveConditions(ctx, machine, before, step.IfUnchanged)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && m.Requests() {
		because := condition.Get(machine, clusterv1.MachineHealthCheckSucceededV1Beta1Condition)
		c.Recorder.Eventf(machine, corev1.EventTypeNormal, "MachineMarkedUnhealthy", "Machine is unhealthy and will be replaced: %s",
			because.Message)
	}
	return err
}
