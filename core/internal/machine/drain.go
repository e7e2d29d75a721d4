package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/drain"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/remote"
	"sigs.k8s.io/cluster-api/internal/step"
)

const (
	// drainAttempt bounds one attempt to drain; what is left is tried again.
	drainAttempt = 20 * time.Second
	// drainRetry is the pause after an attempt. Evictions that a disruption budget refuses give no event.
	drainRetry = 20 * time.Second
	// unreachablePods is how long Pods of an unreachable Node may take to go; nothing there can confirm it.
	unreachablePods = 5 * time.Minute
	// volumesBackstop bounds the wait for the Node event that tells of detached volumes.
	volumesBackstop = 30 * time.Second
)

// drainer moves work off a Node; an interface, because a real one speaks the eviction protocol.
type drainer interface {
	// Cordon keeps new Pods off the Node.
	Cordon(ctx context.Context, config *rest.Config, node *corev1.Node) error
	// Evict is one attempt to get rid of the Pods; an error says which are left.
	Evict(ctx context.Context, config *rest.Config, node *corev1.Node) error
}

// drain moves work off the Node.
func (c *Controller) drain(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	limit := m.Spec.NodeDrainTimeout
	_, excluded := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	if excluded || condition.IsTrue(m, clusterv1.DrainingSucceededCondition) || c.elapsed(m, clusterv1.DrainingSucceededCondition, limit) {
		return step.Done(), nil
	}
	workload, r, err := c.reach(ctx, s)
	if workload == nil {
		return r, err
	}
	c.begin(m, clusterv1.DrainingSucceededCondition, clusterv1.DrainingReason, "Draining the node before deletion")
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			condition.Set(m, condition.True(clusterv1.DrainingSucceededCondition))
			return step.Done(), nil
		}
		return step.Done(), fmt.Errorf("reading Node %s: %w", m.Status.NodeRef.Name, err)
	}
	if err := c.drainer.Cordon(ctx, workload.Config, node); err != nil {
		c.drainFailed(ctx, m, err)
		return c.retry(m, clusterv1.DrainingSucceededCondition, limit, drainRetry, "Node "+node.Name+" to be cordoned"), nil
	}
	if err := c.drainer.Evict(ctx, workload.Config, node); err != nil {
		ctrl.LoggerFrom(ctx).Info("Node is not drained yet", "Node", node.Name, "reason", err.Error())
		return c.retry(m, clusterv1.DrainingSucceededCondition, limit, drainRetry, "Node "+node.Name+" to be drained"), nil
	}
	condition.Set(m, condition.True(clusterv1.DrainingSucceededCondition))
	step.Event(ctx, "SuccessfulDrainNode", "success draining Machine's node %q", node.Name)
	return step.Done(), nil
}

// reach is the workload cluster; nil when there is no way to it, which counts as nothing to do there, as
// documented. While connecting it is worth a wait: after a restart of the manager no cluster is connected.
func (c *Controller) reach(ctx context.Context, s *scope) (*remote.Cluster, step.Result, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	switch {
	case remote.IsConnecting(err):
		return nil, step.WaitAtMost(connectingBackstop, err.Error()), nil
	case remote.IsNotConnected(err):
		return nil, step.Done(), nil
	}
	return workload, step.Done(), err
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

// drainFailed states why draining did not even begin. It is as long not done as before, so that an error
// whose text changes does not prolong nodeDrainTimeout.
func (c *Controller) drainFailed(ctx context.Context, m *clusterv1.Machine, err error) {
	failed := condition.False(clusterv1.DrainingSucceededCondition, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%v", err)
	failed.LastTransitionTime = condition.Get(m, clusterv1.DrainingSucceededCondition).LastTransitionTime
	condition.Set(m, failed)
	step.Warning(ctx, "FailedDrainNode", "error draining Machine's node %q: %v", m.Status.NodeRef.Name, err)
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

// evictor drains as "kubectl drain" does: DaemonSet Pods stay, data in emptyDir volumes is lost.
type evictor struct {
	// timeout bounds each request.
	timeout time.Duration
}

// Cordon implements drainer.
func (e evictor) Cordon(ctx context.Context, config *rest.Config, node *corev1.Node) error {
	helper, err := e.helper(ctx, config, node)
	if err != nil {
		return err
	}
	if err := drain.RunCordonOrUncordon(helper, node.DeepCopy(), true); err != nil {
		return fmt.Errorf("cordoning: %w", err)
	}
	return nil
}

// Evict implements drainer.
func (e evictor) Evict(ctx context.Context, config *rest.Config, node *corev1.Node) error {
	helper, err := e.helper(ctx, config, node)
	if err != nil {
		return err
	}
	pods, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return helper.DeleteOrEvictPods(pods.Pods())
}

func (e evictor) helper(ctx context.Context, config *rest.Config, node *corev1.Node) (*drain.Helper, error) {
	config = rest.CopyConfig(config)
	config.Timeout = e.timeout
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: set,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1, Timeout: drainAttempt,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if unreachable(node) {
		helper.SkipWaitForDeleteTimeoutSeconds = int(unreachablePods.Seconds())
	}
	return helper, nil
}

// unreachable is whether the kubelet does not answer: nothing confirms then that Pods are gone.
func unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown {
			return true
		}
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}

// volumes waits until the Node has no volumes attached.
func (c *Controller) volumes(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	limit := m.Spec.NodeVolumeDetachTimeout
	_, excluded := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	if excluded || c.elapsed(m, clusterv1.VolumeDetachSucceededCondition, limit) {
		return step.Done(), nil
	}
	workload, r, err := c.reach(ctx, s)
	if workload == nil {
		return r, err
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); client.IgnoreNotFound(err) != nil {
		step.Warning(ctx, "FailedWaitForVolumeDetach", "error waiting for node volumes detaching, Machine's node %q: %v", m.Status.NodeRef.Name, err)
		return step.Done(), fmt.Errorf("reading Node %s: %w", m.Status.NodeRef.Name, err)
	}
	if len(node.Status.VolumesAttached) == 0 {
		if !condition.IsTrue(m, clusterv1.VolumeDetachSucceededCondition) {
			condition.Set(m, condition.True(clusterv1.VolumeDetachSucceededCondition))
			step.Event(ctx, "NodeVolumesDetached", "success waiting for node volumes detaching Machine's node %q", m.Status.NodeRef.Name)
		}
		return step.Done(), nil
	}
	c.begin(m, clusterv1.VolumeDetachSucceededCondition, clusterv1.WaitingForVolumeDetachReason, "Waiting for node volumes to be detached")
	return c.retry(m, clusterv1.VolumeDetachSucceededCondition, limit, volumesBackstop, "volumes of Node "+node.Name+" to be detached"), nil
}
