package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/drain"

	"sigs.k8s.io/cluster-api/sdk/remote"
)

// unreachablePods is how long to wait for Pods of an unreachable Node, whose kubelet cannot confirm that they are gone.
const unreachablePods = 5 * time.Minute

// evictor drains like "kubectl drain": Pods of DaemonSets and static Pods stay, data in emptyDir volumes is lost. Unlike
// kubectl, it requests each eviction once and retries with the next reconcile, so that no worker is blocked.
type evictor struct {
	// timeout is the timeout of a whole attempt.
	timeout time.Duration
}

// Drain implements drainer.
func (e evictor) Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node) (remainingPods, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	set, err := workload.Clientset(e.timeout)
	if err != nil {
		return remainingPods{}, fmt.Errorf("creating a client: %w", err)
	}
	return drainOnce(ctx, set, node)
}

// drainOnce makes one attempt.
func drainOnce(ctx context.Context, set kubernetes.Interface, node *corev1.Node) (remainingPods, error) {
	helper := &drain.Helper{
		Ctx: ctx, Client: set,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if unreachable(node) {
		helper.SkipWaitForDeleteTimeoutSeconds = int(unreachablePods.Seconds())
	}
	if err := drain.RunCordonOrUncordon(helper, node.DeepCopy(), true); err != nil {
		return remainingPods{}, fmt.Errorf("cordoning the Node: %w", err)
	}
	pods, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return remainingPods{}, fmt.Errorf("listing the Pods of the Node: %w", errors.Join(errs...))
	}
	return evictAll(ctx, helper, pods.Pods())
}

// evictAll evicts the Pods that are not terminating yet.
func evictAll(ctx context.Context, helper *drain.Helper, pods []corev1.Pod) (remainingPods, error) {
	left := remainingPods{pods: len(pods)}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !p.DeletionTimestamp.IsZero() })
	if len(pods) == 0 {
		return left, nil
	}
	version, err := drain.CheckEvictionSupport(helper.Client)
	if err != nil {
		return remainingPods{}, fmt.Errorf("checking whether the API server supports evictions: %w", err)
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, pod := range pods {
		if version.Empty() {
			err = helper.DeletePod(pod)
		} else {
			err = helper.EvictPod(pod, version)
		}
		switch {
		case apierrors.IsNotFound(err):
			left.pods--
		case ctx.Err() != nil: // the next attempt evicts the rest
			return left, nil
		case err != nil:
			left.rejected = append(left.rejected, fmt.Sprintf("Pod %s/%s (%s)", pod.Namespace, pod.Name, rejectionReason(err)))
		}
	}
	return left, nil
}

// rejectionReason returns why an eviction was rejected. The text must not vary between attempts.
func rejectionReason(err error) string {
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), apierrors.IsTooManyRequests(err):
		return "its disruption budget does not allow it"
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "its namespace is being deleted"
	}
	return err.Error()
}

// unreachable reports whether the kubelet does not respond, so that it cannot confirm that Pods are gone.
func unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionUnknown {
			return true
		}
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}
