package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// drainFailedRetry is the delay after an attempt that failed before it evicted any Pod.
	drainFailedRetry = 20 * time.Second
	// rejectedRetry is the delay while evictions are rejected. A disruption budget that permits them triggers no event.
	rejectedRetry = 5 * time.Second
	// terminatingRetry is the delay while Pods terminate. Pods are not watched: there are too many of them.
	terminatingRetry = 2 * time.Second
	// maxListedPods is the maximum number of Pods that a condition lists.
	maxListedPods = 5
	draining      = "Draining the node before deletion"
)

// drainer evicts Pods from a Node. Tests use a fake.
type drainer interface {
	// Drain cordons the Node and evicts its Pods. It does not wait for them, but returns the ones that are left. It returns an
	// error if it could not request the evictions.
	Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node) (remainingPods, error)
}

// remainingPods are the Pods that are still on a Node that is being drained.
type remainingPods struct {
	// pods is their number.
	pods int
	// rejected lists the Pods whose eviction was rejected, each with the reason, sorted.
	rejected []string
}

// delay returns the time until the next attempt.
func (r remainingPods) delay() time.Duration {
	if len(r.rejected) > 0 {
		return rejectedRetry
	}
	return terminatingRetry
}

// message returns the message of the condition. It does not count terminating Pods, because then it would change with each of
// them.
func (r remainingPods) message() string {
	if len(r.rejected) == 0 {
		return draining
	}
	listed := r.rejected[:min(len(r.rejected), maxListedPods)]
	message := draining + "; cannot be evicted: " + strings.Join(listed, ", ")
	if len(listed) < len(r.rejected) {
		message += ", ..."
	}
	return message
}

// drain drains the Node, with one attempt per reconcile.
func (c *Controller) drain(ctx context.Context, s *scope) (step.Result, error) {
	const kind = clusterv1.DrainingSucceededV1Beta1Condition
	m := s.machine
	limit := seconds(m.Spec.Deletion.NodeDrainTimeoutSeconds)
	_, excluded := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	if excluded || condition.IsTrue(m, kind) || c.elapsed(m, kind, limit) {
		return step.Done(), nil
	}
	workload, r, err := c.reach(ctx, s, kind, limit)
	if workload == nil {
		return r, err
	}
	c.begin(m, kind, clusterv1.DrainingV1Beta1Reason, draining)
	node, err := ownNode(ctx, workload, m)
	if err != nil {
		return step.Done(), err
	}
	if node == nil {
		condition.Set(m, condition.True(kind))
		return step.Done(), nil
	}
	left, err := c.drainer.Drain(ctx, workload, node)
	switch {
	case err != nil:
		c.setKeepingTime(m, condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedV1Beta1Reason, "%v", err))
		step.Warning(ctx, "FailedDrainNode", "error draining Machine's node %q: %v", node.Name, err)
		return c.retry(m, kind, limit, drainFailedRetry, "Node "+node.Name+" to be drained"), nil
	case left.pods > 0:
		c.setKeepingTime(m, condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingV1Beta1Reason, "%s", left.message()))
		return c.retry(m, kind, limit, left.delay(), fmt.Sprintf("%d Pods to leave Node %s", left.pods, node.Name)), nil
	}
	condition.Set(m, condition.True(kind))
	step.Event(ctx, "SuccessfulDrainNode", "success draining Machine's node %q", node.Name)
	return step.Done(), nil
}

// setKeepingTime sets a condition and keeps its transition time: a new message must not restart the timeout.
func (c *Controller) setKeepingTime(m *clusterv1.Machine, to clusterv1.Condition) {
	to.LastTransitionTime = condition.Get(m, to.Type).LastTransitionTime
	condition.Set(m, to)
}

// begin sets a condition to False unless it is False already. Timeouts count from its transition time.
func (c *Controller) begin(m *clusterv1.Machine, t clusterv1.ConditionType, reason, message string) {
	if condition.IsFalse(m, t) {
		return
	}
	begun := condition.False(t, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	begun.LastTransitionTime = metav1.NewTime(c.Clock.Now().UTC().Truncate(time.Second))
	condition.Set(m, begun)
}

// seconds returns the timeout of a step of the deletion; zero, which is no timeout, if it is nil.
func seconds(timeout *int32) time.Duration { return time.Duration(ptr.Deref(timeout, 0)) * time.Second }

// elapsed reports whether the timeout of a step has passed since it began.
func (c *Controller) elapsed(m *clusterv1.Machine, t clusterv1.ConditionType, limit time.Duration) bool {
	since := condition.Get(m, t)
	return limit > 0 && since != nil && c.Clock.Since(since.LastTransitionTime.Time) >= limit
}

// retry waits for the delay, or until the timeout of the step has passed if that is sooner.
func (c *Controller) retry(m *clusterv1.Machine, t clusterv1.ConditionType, limit, delay time.Duration, what string) step.Result {
	if since := condition.Get(m, t); since != nil && limit > 0 {
		left := limit - c.Clock.Since(since.LastTransitionTime.Time)
		delay = max(min(delay, left), time.Second)
	}
	return step.WaitAtMost(delay, what)
}
