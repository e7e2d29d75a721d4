package controlplane

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// etcdBackstop is how soon etcd is asked again while it alone keeps an action from being taken: nothing tells when its
// members change.
const etcdBackstop = 5 * time.Second

// remove deletes a Machine. Its etcd member leaves first, and before that the Machine is marked, so that whatever
// happens in between, the same Machine is chosen again and the deletion is finished.
func (c *Controller) remove(ctx context.Context, s *scope, name string) (step.Result, error) {
	m := s.named(name)
	if m == nil {
		return step.Wait("a Machine that can be deleted"), nil
	}
	if s.stacked() {
		if err := c.mark(ctx, m); err != nil {
			return step.Result{}, err
		}
		if why, err := c.leaveEtcd(ctx, s, m); err != nil || why != "" {
			if err != nil {
				step.Warning(ctx, "FailedScaleDown", "Cannot remove the etcd member of Machine %s: %s", m.Name, err)
			}
			return step.WaitAtMost(etcdBackstop, why), err
		}
	}
	err := c.Client.Delete(ctx, m.Machine, client.Preconditions{UID: &m.UID})
	if client.IgnoreNotFound(err) != nil {
		step.Warning(ctx, "FailedScaleDown", "Cannot delete Machine %s: %s", m.Name, err)
		return step.Result{}, fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	c.awaitDeleting(ctx, m)
	return step.Wait("Machine " + m.Name + " to go"), nil
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

// leaving is the value of the mark on a Machine whose deletion has begun. People mark with other values, or none: what
// they mark is the first to go, but need not go.
const leaving = "leaving"

// mark makes a Machine the first to go, for good.
func (c *Controller) mark(ctx context.Context, m *machine) error {
	if m.Annotations[clusterv1.DeleteMachineAnnotation] == leaving {
		return nil
	}
	before := m.Machine.DeepCopy()
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[clusterv1.DeleteMachineAnnotation] = leaving
	if err := c.Client.Patch(ctx, m.Machine, client.MergeFrom(before), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("marking Machine %s for deletion: %w", m.Name, err)
	}
	return nil
}
