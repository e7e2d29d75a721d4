package machine

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// nodeRetry is the delay between attempts to delete a Node.
const nodeRetry = 2 * time.Second

// LateNodeTimeout is how long to look for a Node that may have joined without being known, if there is no timeout for deleting it: what may
// not exist does not hold a deletion forever.
const LateNodeTimeout = 10 * time.Second

// deleteNode deletes the Node, also one that joined while the Machine was being deleted. It retries until
// spec.deletion.nodeDeletionTimeoutSeconds have passed. If that is nil or zero, it retries to delete a known Node forever.
func (c *Controller) deleteNode(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	allowed, err := c.nodeWorkAllowed(ctx, s)
	if err != nil || !allowed {
		return step.Done().KeepCondition(), err
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if err == nil {
		err = c.findLate(ctx, workload, m)
	}
	if err == nil && m.Status.NodeRef.IsDefined() {
		err = deleteOwnNode(ctx, workload, m)
		s.found.node.looked = err == nil
	}
	if err == nil {
		return step.Done().KeepCondition(), nil
	}
	limit := seconds(m.Spec.Deletion.NodeDeletionTimeoutSeconds)
	if limit == 0 && !m.Status.NodeRef.IsDefined() {
		limit = LateNodeTimeout
	}
	if limit != 0 && c.Clock.Now().After(m.DeletionTimestamp.Add(limit)) {
		step.Warning(ctx, "FailedDeleteNode", "Gave up deleting Node %s after %s: %v", nodeName(m), limit, err)
		return step.Done().KeepCondition(), nil
	}
	if !deletionFailed(m) {
		step.Warning(ctx, "FailedDeleteNode", "error deleting Machine's node %q: %v", nodeName(m), err)
	}
	return step.WaitAtMost(nodeRetry, fmt.Sprintf("Node %s to be deleted: %v", nodeName(m), err)).WithConditions(condition.False(
		clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.DeletionFailedV1Beta1Reason, "")), nil
}

// nodeName returns the name of the Node in messages, or the provider ID if no Node has been found.
func nodeName(m *clusterv1.Machine) string {
	if !m.Status.NodeRef.IsDefined() {
		return "with provider ID " + m.Spec.ProviderID
	}
	return m.Status.NodeRef.Name
}

// deleteOwnNode deletes the Machine's Node, but not another Node that now has its name, which the cache may not have yet.
func deleteOwnNode(ctx context.Context, workload *remote.Cluster, m *clusterv1.Machine) error {
	node, err := ownNode(ctx, workload.Live, m)
	if err != nil || node == nil {
		return err
	}
	return client.IgnoreNotFound(workload.Delete(ctx, node, client.Preconditions{UID: &node.UID}))
}
