package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/drain"
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

// drain moves work off the Node.
func (c *Controller) drain(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	if _, ok := m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]; ok || c.elapsed(m, clusterv1.DrainingSucceededCondition, m.Spec.NodeDrainTimeout) {
		return step.Done(), nil
	}
	if condition.IsTrue(m, clusterv1.DrainingSucceededCondition) {
		return step.Done(), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		return step.Done(), nil // as documented: without a client to the cluster the drain counts as done
	}
	if err != nil {
		return step.Done(), err
	}
	if !condition.Has(m, clusterv1.DrainingSucceededCondition) {
		condition.Set(m, condition.False(clusterv1.DrainingSucceededCondition, clusterv1.ConditionSeverityInfo, clusterv1.DrainingReason,
			"Draining the node before deletion"))
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); err != nil {
		if apierrors.IsNotFound(err) {
			condition.Set(m, condition.True(clusterv1.DrainingSucceededCondition))
			return step.Done(), nil
		}
		return step.Done(), fmt.Errorf("reading Node %s: %w", m.Status.NodeRef.Name, err)
	}
	if err := c.evict(ctx, workload.Config, node); err != nil {
		condition.Set(m, condition.False(clusterv1.DrainingSucceededCondition, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%v", err))
		step.Warning(ctx, "FailedDrainNode", "error draining Machine's node %q: %v", node.Name, err)
		return step.WaitAtMost(drainRetry, "Node "+node.Name+" to be drained"), nil
	}
	condition.Set(m, condition.True(clusterv1.DrainingSucceededCondition))
	step.Event(ctx, "SuccessfulDrainNode", "success draining Machine's node %q", node.Name)
	return step.Done(), nil
}

// elapsed is whether a limit on a step has passed since the step's condition was first set.
func (c *Controller) elapsed(m *clusterv1.Machine, t clusterv1.ConditionType, limit *metav1.Duration) bool {
	since := condition.Get(m, t)
	return limit != nil && limit.Duration > 0 && since != nil && !since.LastTransitionTime.IsZero() &&
		c.Clock.Since(since.LastTransitionTime.Time) >= limit.Duration
}

// evict cordons the Node and evicts its Pods. DaemonSet Pods stay; data in emptyDir volumes is lost.
func (c *Controller) evict(ctx context.Context, config *rest.Config, node *corev1.Node) error {
	config = rest.CopyConfig(config)
	config.Timeout = c.drainTimeout
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	helper := &drain.Helper{
		Ctx: ctx, Client: set,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1, Timeout: drainAttempt,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if unreachable(node) {
		helper.SkipWaitForDeleteTimeoutSeconds = int(unreachablePods.Seconds())
	}
	if err := drain.RunCordonOrUncordon(helper, node, true); err != nil {
		return fmt.Errorf("cordoning: %w", err)
	}
	pods, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return helper.DeleteOrEvictPods(pods.Pods())
}

func unreachable(node *corev1.Node) bool {
	for _, t := range node.Spec.Taints {
		if t.Key == corev1.TaintNodeUnreachable {
			return true
		}
	}
	return false
}

// volumes waits until the Node has no volumes attached.
func (c *Controller) volumes(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	if _, ok := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]; ok || c.elapsed(m, clusterv1.VolumeDetachSucceededCondition, m.Spec.NodeVolumeDetachTimeout) {
		return step.Done(), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		return step.Done(), nil
	}
	if err != nil {
		return step.Done(), err
	}
	node := &corev1.Node{}
	if err := workload.Get(ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node); client.IgnoreNotFound(err) != nil {
		return step.Done(), fmt.Errorf("reading Node %s: %w", m.Status.NodeRef.Name, err)
	}
	if len(node.Status.VolumesAttached) == 0 {
		if !condition.IsTrue(m, clusterv1.VolumeDetachSucceededCondition) {
			condition.Set(m, condition.True(clusterv1.VolumeDetachSucceededCondition))
			step.Event(ctx, "NodeVolumesDetached", "success waiting for node volumes detaching Machine's node %q", m.Status.NodeRef.Name)
		}
		return step.Done(), nil
	}
	condition.Set(m, condition.False(clusterv1.VolumeDetachSucceededCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachReason,
		"Waiting for node volumes to be detached"))
	return step.WaitAtMost(volumesBackstop, "volumes of Node "+node.Name+" to be detached"), nil
}
