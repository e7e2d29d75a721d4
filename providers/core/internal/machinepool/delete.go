package machinepool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// machinesBackstop bounds the wait for Machines to be deleted, in case the event of the last one is lost.
	machinesBackstop = time.Minute
	// nodeRetry is the delay between attempts to delete Nodes.
	nodeRetry = 2 * time.Second
	// defaultNodeDeletionTimeout is how long to try, if the template sets no timeout. It is that of Machines.
	defaultNodeDeletionTimeout = 10 * time.Second
)

// deleteInfrastructure deletes the infrastructure object and waits until it is gone, with all machines.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, &s.pool.Spec.Template.Spec.InfrastructureRef, s.pool, clusterv1.InfrastructureReadyCondition)
}

// deleteBootstrap deletes the bootstrap config and waits until it is gone.
func (c *Controller) deleteBootstrap(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, s.pool.Spec.Template.Spec.Bootstrap.ConfigRef, s.pool, clusterv1.BootstrapReadyCondition)
}

// deleteAllMachines deletes the Machines that the infrastructure provider left behind, and waits until none exists in the API server.
func (c *Controller) deleteAllMachines(ctx context.Context, s *scope) (step.Result, error) {
	left, err := c.ownMachines(ctx, c.Client, s)
	if err == nil && len(left) == 0 {
		left, err = c.ownMachines(ctx, c.Live, s)
	}
	if err != nil || len(left) == 0 {
		return step.Done(), err
	}
	var errs []error
	for _, m := range left {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		if err := c.DeleteAny(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("deleting Machine %s: %w", m.Name, err))
		}
	}
	return step.WaitAtMost(machinesBackstop, fmt.Sprintf("%d Machines to be deleted", len(left))), errors.Join(errs...)
}

// ownMachines lists the Machines that the pool controls.
func (c *Controller) ownMachines(ctx context.Context, from client.Reader, s *scope) ([]*clusterv1.Machine, error) {
	all, err := machines(ctx, from, s.pool)
	return slices.DeleteFunc(all, func(m *clusterv1.Machine) bool { return !metav1.IsControlledBy(m, s.pool) }), err
}

// deleteNodes deletes the Nodes of the pool, whose machines are gone by now. It retries until nodeDeletionTimeout has passed, forever
// if that is zero. The Nodes of a Cluster that is being deleted are left alone.
func (c *Controller) deleteNodes(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	if len(p.Status.NodeRefs) == 0 || s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero() {
		return step.Done(), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if err == nil {
		p.Status.NodeRefs, err = c.deleteOwn(ctx, s, workload)
	}
	if err == nil {
		return step.Done(), nil
	}
	limit := defaultNodeDeletionTimeout
	if set := p.Spec.Template.Spec.NodeDeletionTimeout; set != nil {
		limit = set.Duration
	}
	if limit != 0 && c.Clock.Now().After(p.DeletionTimestamp.Add(limit)) && !remote.IsConnecting(err) {
		step.Warning(ctx, "FailedDeleteNode", "Gave up deleting %d Nodes after %s: %v", len(p.Status.NodeRefs), limit, err)
		return step.Done(), nil
	}
	return step.WaitAtMost(nodeRetry, fmt.Sprintf("%d Nodes to be deleted: %v", len(p.Status.NodeRefs), err)), nil
}

// deleteOwn deletes the Nodes in status.nodeRefs, and returns the references to those that it could not delete.
func (c *Controller) deleteOwn(ctx context.Context, s *scope, workload client.Client) ([]corev1.ObjectReference, error) {
	own, err := c.retired(ctx, s, workload, nil, membership{})
	if err != nil {
		return s.pool.Status.NodeRefs, err
	}
	return deleteEach(ctx, workload, own)
}

// finish removes the finalizer.
func finish(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.RemoveFinalizer(s.pool, clusterv1.MachinePoolFinalizer)
	return step.Done(), nil
}
