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

// unreachableSeconds is the grace period of Pods of an unreachable Node, and how long to wait for them afterwards: its kubelet cannot
// confirm that they are gone. Disruption budgets still apply.
const unreachableSeconds = 1

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
		helper.GracePeriodSeconds, helper.SkipWaitForDeleteTimeoutSeconds = unreachableSeconds, unreachableSeconds
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

// evictAll evicts the Pods that are not terminating yet. With a grace period, it also evicts those that would terminate later.
func evictAll(ctx context.Context, helper *drain.Helper, pods []corev1.Pod) (remainingPods, error) {
	left := remainingPods{pods: len(pods)}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		if p.DeletionTimestamp.IsZero() {
			return false
		}
		late := helper.GracePeriodSeconds >= 0 && time.Until(p.DeletionTimestamp.Time) > time.Duration(helper.GracePeriodSeconds)*time.Second
		return !late
	})
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

// unreachable reports whether the kubelet does not respond, so that it can confirm neither that Pods are gone nor that volumes are
// detached. Its taint decides only if the Node has no condition Ready: it is removed some time after the kubelet responds again.
func unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionUnknown
		}
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}
