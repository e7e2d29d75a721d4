package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// drainFailedRetry is the delay after an attempt that failed before it evicted any Pod.
	drainFailedRetry = 20 * time.Second
	// rulesTimeout is how long the cache may take to read all MachineDrainRules. Without permission, it would take forever.
	rulesTimeout = 10 * time.Second
	draining     = "Draining the node before deletion"
)

// drainer evicts Pods from a Node, and finds its volumes. Tests use a fake.
type drainer interface {
	// Drain cordons the Node and evicts its Pods. It does not wait for them, but returns the ones that are left. It returns an
	// error if it could not request the evictions.
	Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node, rules drain.Rules) (drain.Left, error)
	// Volumes returns the volumes that have to be detached from the Node, without those of Pods that stay on it.
	Volumes(ctx context.Context, workload *remote.Cluster, node *corev1.Node, rules drain.Rules) ([]string, error)
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
	left, err := c.drainOnce(ctx, s, workload, node)
	switch {
	case err != nil:
		c.setKeepingTime(m, condition.False(kind, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedV1Beta1Reason, "%v", err))
		step.Warning(ctx, "FailedDrainNode", "error draining Machine's node %q: %v", node.Name, err)
		return c.retry(m, kind, limit, drainFailedRetry, "Node "+node.Name+" to be drained"), nil
	case left.Pods() > 0:
		s.found.pods = &left
		c.setKeepingTime(m, condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.DrainingV1Beta1Reason, "%s", left.Message()))
		return c.retry(m, kind, limit, left.Delay(), fmt.Sprintf("%d Pods to leave Node %s", left.Pods(), node.Name)), nil
	}
	condition.Set(m, condition.True(kind))
	step.Event(ctx, "SuccessfulDrainNode", "success draining Machine's node %q", node.Name)
	return step.Done(), nil
}

// drainOnce makes one attempt, by the rules of the Machine's namespace.
func (c *Controller) drainOnce(ctx context.Context, s *scope, workload *remote.Cluster, node *corev1.Node) (drain.Left, error) {
	rules, err := c.drainRules(ctx, s)
	if err != nil {
		return drain.Left{}, err
	}
	return c.drainer.Drain(ctx, workload, node, rules)
}

// drainRules returns the rules of the Machine's namespace that apply to the Machine.
func (c *Controller) drainRules(ctx context.Context, s *scope) (drain.Rules, error) {
	list := &clusterv1.MachineDrainRuleList{}
	reading, done := context.WithTimeout(ctx, rulesTimeout)
	defer done()
	// Management clusters with the definitions of v1.7 do not have the kind.
	if err := c.Client.List(reading, list, client.InNamespace(s.machine.Namespace)); err != nil && !meta.IsNoMatchError(err) {
		if reading.Err() != nil {
			return nil, fmt.Errorf("MachineDrainRules could not be read within %s: the manager must be allowed to list and watch them: %w",
				rulesTimeout, err)
		}
		return nil, fmt.Errorf("listing MachineDrainRules: %w", err)
	}
	return drain.RulesFor(s.machine, s.cluster, list.Items)
}

// setKeepingTime sets a condition and keeps its transition time: a new message must not restart the timeout.
func (c *Controller) setKeepingTime(m *clusterv1.Machine, to clusterv1.Condition) {
	to.LastTransitionTime = condition.Get(m, to.Type).LastTransitionTime
	condition.Set(m, to)
}

// begin sets a condition to False, unless it is False already, and records when the step began.
func (c *Controller) begin(m *clusterv1.Machine, t clusterv1.ConditionType, reason, message string) {
	if condition.IsFalse(m, t) {
		return
	}
	begun := condition.False(t, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	begun.LastTransitionTime = metav1.NewTime(c.Clock.Now().UTC().Truncate(time.Second))
	condition.Set(m, begun)
	record(m, t, begun.LastTransitionTime)
}

// seconds returns the timeout of a step of the deletion; zero, which is no timeout, if it is nil.
func seconds(timeout *int32) time.Duration { return time.Duration(ptr.Deref(timeout, 0)) * time.Second }

// elapsed reports whether the timeout of a step has passed since it began.
func (c *Controller) elapsed(m *clusterv1.Machine, t clusterv1.ConditionType, limit time.Duration) bool {
	since, begun := began(m, t)
	return limit > 0 && begun && c.Clock.Since(since) >= limit
}

// retry waits for the delay, or until the timeout of the step has passed if that is sooner.
func (c *Controller) retry(m *clusterv1.Machine, t clusterv1.ConditionType, limit, delay time.Duration, what string) step.Result {
	if since, begun := began(m, t); begun && limit > 0 {
		left := limit - c.Clock.Since(since)
		delay = max(min(delay, left), time.Second)
	}
	return step.WaitAtMost(delay, what)
}
