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

	"sigs.k8s.io/cluster-api/provider/remote"
)

// unreachablePods is how long Pods of an unreachable Node may take to go; nothing there can confirm it.
const unreachablePods = 5 * time.Minute

// evictor drains as "kubectl drain" does: Pods of DaemonSets and static Pods stay, data in emptyDir volumes is
// lost. Unlike kubectl it asks once for every Pod and comes back later, so that no worker waits for Pods.
type evictor struct {
	// timeout bounds an attempt as a whole.
	timeout time.Duration
}

// Drain implements drainer.
func (e evictor) Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node) (remains, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	set, err := workload.Clientset(e.timeout)
	if err != nil {
		return remains{}, fmt.Errorf("making a client: %w", err)
	}
	return drainOnce(ctx, set, node)
}

// drainOnce is one attempt.
func drainOnce(ctx context.Context, set kubernetes.Interface, node *corev1.Node) (remains, error) {
	helper := &drain.Helper{
		Ctx: ctx, Client: set,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if unreachable(node) {
		helper.SkipWaitForDeleteTimeoutSeconds = int(unreachablePods.Seconds())
	}
	if err := drain.RunCordonOrUncordon(helper, node.DeepCopy(), true); err != nil {
		return remains{}, fmt.Errorf("cordoning: %w", err)
	}
	pods, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return remains{}, fmt.Errorf("finding its Pods: %w", errors.Join(errs...))
	}
	return evictAll(ctx, helper, pods.Pods())
}

// evictAll asks the Pods to go that are not going already.
func evictAll(ctx context.Context, helper *drain.Helper, pods []corev1.Pod) (remains, error) {
	left := remains{pods: len(pods)}
	pods = slices.DeleteFunc(pods, func(p corev1.Pod) bool { return !p.DeletionTimestamp.IsZero() })
	if len(pods) == 0 {
		return left, nil
	}
	version, err := drain.CheckEvictionSupport(helper.Client)
	if err != nil {
		return remains{}, fmt.Errorf("asking which evictions the API server knows: %w", err)
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
		case ctx.Err() != nil: // the rest comes with the next attempt
			return left, nil
		case err != nil:
			left.refused = append(left.refused, fmt.Sprintf("Pod %s/%s (%s)", pod.Namespace, pod.Name, whyRefused(err)))
		}
	}
	return left, nil
}

// whyRefused is why a Pod may not be evicted, in a text that stays the same from one attempt to the next.
func whyRefused(err error) string {
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), apierrors.IsTooManyRequests(err):
		return "its disruption budget does not allow it"
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "its namespace is being deleted"
	}
	return err.Error()
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
