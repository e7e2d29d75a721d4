package controlplane

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/step"
)

// etcdBackstop is how soon etcd is asked again while it alone keeps an action from being taken: nothing tells when its
// members change.
const etcdBackstop = 5 * time.Second

// remove deletes a Machine, if its etcd member may leave. The member stays until our hook is all that holds up the
// deletion (see terminate): until then it keeps the API server of its Node going, which the drain needs.
func (c *Controller) remove(ctx context.Context, s *scope, name string) (step.Result, error) {
	m := s.named(name)
	if m == nil {
		return step.Wait("a Machine that can be deleted"), nil
	}
	if s.stacked() {
		if why := c.mayLeave(ctx, s, m); why != "" {
			return step.WaitAtMost(etcdBackstop, why), nil
		}
	}
	if err := c.deleteMachine(ctx, s, m); err != nil {
		if !step.IsStale(err) {
			step.Warning(ctx, "FailedScaleDown", "Cannot delete Machine %s: %s", m.Name, err)
		}
		return step.Result{}, err
	}
	return step.Wait("Machine " + m.Name + " to go"), nil
}

// deleteMachine deletes the Machine that was decided on: if somebody wrote it since it was read, the decision is made
// again. Nothing happens to it before our hook is in the API server.
func (c *Controller) deleteMachine(ctx context.Context, s *scope, m *machine) error {
	if s.stacked() {
		if err := c.hook(ctx, m.Machine); err != nil {
			return err
		}
	}
	if err := c.Delete(ctx, m.Machine); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	c.awaitDeleting(ctx, m)
	return nil
}

const (
	visiblePoll = 2 * time.Millisecond
	visibleWait = 5 * time.Second
)

// awaitDeleting returns once the cache shows that a Machine is being deleted, so that the next reconcile counts it so.
// It gives up silently: acting on an old cache chooses the same Machine once more, this only makes it rare.
func (c *Controller) awaitDeleting(ctx context.Context, m *machine) {
	_ = wait.PollUntilContextTimeout(ctx, visiblePoll, visibleWait, true, func(ctx context.Context) (bool, error) {
		seen := &clusterv1.Machine{}
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(m), seen)
		return apierrors.IsNotFound(err) || err == nil && (seen.DeletionTimestamp != nil || seen.UID != m.UID), client.IgnoreNotFound(err)
	})
}
