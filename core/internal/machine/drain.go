package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

const (
	// drainFailedRetry is the pause after an attempt that did not even get to ask Pods to go.
	drainFailedRetry = 20 * time.Second
	// refusedRetry is the pause while Pods may not be evicted. When a disruption budget allows it gives no event.
	refusedRetry = 5 * time.Second
	// leavingRetry is the pause while Pods terminate. Pods are not watched: there are too many of them.
	leavingRetry = 2 * time.Second
	// mostRefused is how many Pods a condition names.
	mostRefused = 5
	draining    = "Draining the node before deletion"
)

// drainer moves work off a Node; an interface, because a real one speaks the eviction protocol.
type drainer interface {
	// Drain keeps new Pods off the Node and asks those on it to go. It does not wait for them but returns what
	// remains; an error says why it could not ask.
	Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node) (remains, error)
}

// remains are the Pods that are still on a Node that is being drained.
type remains struct {
	// pods is how many there are.
	pods int
	// refused are those that may not be evicted now, each with the reason, sorted.
	refused []string
}

// pause is how long to wait before the next attempt.
func (r remains) pause() time.Duration {
	if len(r.refused) > 0 {
		return refusedRetry
	}
	return leavingRetry
}

// message is what the condition says. Pods that are on their way are not in it: it would change with each of them.
func (r remains) message() string {
	if len(r.refused) == 0 {
		return draining
	}
	named := r.refused[:min(len(r.refused), mostRefused)]
	message := draining + "; cannot be evicted: " + strings.Join(named, ", ")
	if len(named) < len(r.refused) {
		message += ", ..."
	}
	return message
}

// drain moves work off the Node, an attempt at a time.
func (c *Controller) drain(ctx context.Context, s *scope) (step.Result, error) {
	const kind = clusterv1.DrainingSucceededCondition
	m := s.machine
	limit := m.Spec.NodeDrainTimeout
	_, excluded := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	if excluded || condition.IsTrue(m, kind) || c.elapsed(m, kind, limit) {
		return step.Done(), nil
	}
	workload, r, err := c.reach(ctx, s, kind, limit)
	if workload == nil {
		return r, err
	}
	c.begin(m, kind, clusterv1.DrainingReason, draining)
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
		c.notDrained(m, condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%v", err))
		step.Warning(ctx, "FailedDrainNode", "error draining Machine's node %q: %v", node.Name, err)
		return c.retry(m, kind, limit, drainFailedRetry, "Node "+node.Name+" to be drainable"), nil
	case left.pods > 0:
		c.notDrained(m, condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingReason, "%s", left.message()))
		return c.retry(m, kind, limit, left.pause(), fmt.Sprintf("%d Pods to leave Node %s", left.pods, node.Name)), nil
	}
	condition.Set(m, condition.True(kind))
	step.Event(ctx, "SuccessfulDrainNode", "success draining Machine's node %q", node.Name)
	return step.Done(), nil
}

// notDrained states why work on a Node is not done. It is so for as long as before: another text must not prolong
// nodeDrainTimeout.
func (c *Controller) notDrained(m *clusterv1.Machine, why clusterv1.Condition) {
	why.LastTransitionTime = condition.Get(m, why.Type).LastTransitionTime
	condition.Set(m, why)
}

// begin states that something started now, unless it did before: limits count from there.
func (c *Controller) begin(m *clusterv1.Machine, t clusterv1.ConditionType, reason, message string) {
	if condition.IsFalse(m, t) {
		return
	}
	started := condition.False(t, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	started.LastTransitionTime = metav1.NewTime(c.Clock.Now().UTC().Truncate(time.Second))
	condition.Set(m, started)
}

// elapsed is whether a limit on a step has passed since the step began; nil or zero is no limit.
func (c *Controller) elapsed(m *clusterv1.Machine, t clusterv1.ConditionType, limit *metav1.Duration) bool {
	since := condition.Get(m, t)
	return limit != nil && limit.Duration > 0 && since != nil && c.Clock.Since(since.LastTransitionTime.Time) >= limit.Duration
}

// retry comes back after pause, or when the limit on the step has passed if that is sooner.
func (c *Controller) retry(m *clusterv1.Machine, t clusterv1.ConditionType, limit *metav1.Duration, pause time.Duration, what string) step.Result {
	if since := condition.Get(m, t); since != nil && limit != nil && limit.Duration > 0 {
		left := limit.Duration - c.Clock.Since(since.LastTransitionTime.Time)
		pause = max(min(pause, left), time.Second)
	}
	return step.WaitAtMost(pause, what)
}
