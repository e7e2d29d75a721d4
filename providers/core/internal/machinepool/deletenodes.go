package machinepool

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machine"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// nodeRetry is the delay between attempts to delete Nodes.
	nodeRetry = 2 * time.Second
	// defaultNodeDeletionTimeout is how long to try, if the template sets no timeout. It is that of Machines.
	defaultNodeDeletionTimeout = 10 * time.Second
	// connectTimeout is how long to wait for the first attempt to connect of a manager that has just started, even if the time is up.
	connectTimeout = time.Minute
)

// deleteNodes deletes the Nodes of the pool, whose machines are gone by now, also those that are not in status.nodeRefs, because they
// joined after the pool was deleted. It retries until nodeDeletionTimeoutSeconds have passed; if they are zero, it retries to delete known
// Nodes forever. The Nodes of a Cluster that is being deleted are left alone.
func (c *Controller) deleteNodes(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	late := len(p.Spec.ProviderIDList) > 0 && s.cluster != nil &&
		condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
	if len(p.Status.NodeRefs) == 0 && !late || s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero() {
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
	if seconds := p.Spec.Template.Spec.Deletion.NodeDeletionTimeoutSeconds; seconds != nil {
		limit = time.Duration(*seconds) * time.Second
	}
	if limit == 0 && len(p.Status.NodeRefs) == 0 {
		limit = machine.LateNodeTimeout
	}
	if limit != 0 && c.Clock.Now().After(p.DeletionTimestamp.Add(limit)) && !c.connects(err) {
		step.Warning(ctx, "FailedDeleteNode", "Gave up deleting %d Nodes after %s: %v", nodesOf(p), limit, err)
		return step.Done(), nil
	}
	return step.WaitAtMost(nodeRetry, fmt.Sprintf("%d Nodes to be deleted: %v", nodesOf(p), err)), nil
}

// connects reports whether an attempt to connect is about to be made.
func (c *Controller) connects(err error) bool {
	since, known := remote.DisconnectedSince(err)
	return remote.IsConnecting(err) && (!known || c.Clock.Since(since) < connectTimeout)
}

// nodesOf returns how many Nodes the pool has, or may have.
func nodesOf(p *clusterv1.MachinePool) int {
	return max(len(p.Status.NodeRefs), len(p.Spec.ProviderIDList))
}

// deleteOwn deletes the Nodes in status.nodeRefs, and those with a provider ID of the pool. It returns the references to those that it
// could not delete.
func (c *Controller) deleteOwn(ctx context.Context, s *scope, workload client.Client) ([]corev1.ObjectReference, error) {
	own, err := c.retired(ctx, s, workload, nil, membership{})
	if err != nil {
		return s.pool.Status.NodeRefs, err
	}
	late, err := c.unrecorded(ctx, s, workload, s.pool.Spec.ProviderIDList)
	if err != nil {
		return s.pool.Status.NodeRefs, err
	}
	return deleteEach(ctx, workload, append(own, late...))
}
