package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// nodeRetry is the delay between attempts to delete a Node.
const nodeRetry = 2 * time.Second

// LateNodeTimeout is how long to look for a Node that may have joined without being known, if nodeDeletionTimeout is nil or zero: what may
// not exist does not hold a deletion forever.
const LateNodeTimeout = 10 * time.Second

// deleteNode deletes the Node, also one that joined while the Machine was being deleted. It retries until nodeDeletionTimeout has
// passed. If that is nil or zero, it retries to delete a known Node forever.
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
	if err == nil && m.Status.NodeRef != nil {
		err = deleteOwnNode(ctx, workload, m)
		s.found.node.looked = err == nil
	}
	if err == nil {
		return step.Done().KeepCondition(), nil
	}
	limit := ptr.Deref(m.Spec.NodeDeletionTimeout, metav1.Duration{}).Duration
	if limit == 0 && m.Status.NodeRef == nil {
		limit = LateNodeTimeout
	}
	if limit != 0 && c.Clock.Now().After(m.DeletionTimestamp.Add(limit)) {
		step.Warning(ctx, "FailedDeleteNode", "Gave up deleting Node %s after %s: %v", nodeName(m), limit, err)
		return step.Done().KeepCondition(), nil
	}
	if !deletionFailed(m) {
		step.Warning(ctx, "FailedDeleteNode", "error deleting Machine's node %q: %v", nodeName(m), err)
	}
	return step.WaitAtMost(nodeRetry, fmt.Sprintf("Node %s to be deleted: %v", nodeName(m), err)).WithConditions(
		condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityWarning, clusterv1.DeletionFailedReason, "")), nil
}

// nodeName returns the name of the Node in messages, or the provider ID if no Node has been found.
func nodeName(m *clusterv1.Machine) string {
	if m.Status.NodeRef == nil {
		return "with provider ID " + ptr.Deref(m.Spec.ProviderID, "")
	}
	return m.Status.NodeRef.Name
}

// deleteOwnNode deletes the Machine's Node, but not another Node that now has its name.
func deleteOwnNode(ctx context.Context, workload client.Client, m *clusterv1.Machine) error {
	node, uid := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Status.NodeRef.Name}}, m.Status.NodeRef.UID
	err := workload.Get(ctx, client.ObjectKeyFromObject(node), node)
	switch {
	case err == nil && !owns(m, node):
		return nil
	case err == nil:
		uid = node.UID
	case !apierrors.IsNotFound(err):
		return err
	}
	// A Node that is not in the cache may have been created a moment ago.
	var opts []client.DeleteOption
	if uid != "" {
		opts = append(opts, client.Preconditions{UID: &uid})
	}
	return client.IgnoreNotFound(workload.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}, opts...))
}
