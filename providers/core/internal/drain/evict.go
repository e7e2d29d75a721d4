package drain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	kubectl "k8s.io/kubectl/pkg/drain"

	"sigs.k8s.io/cluster-api/sdk/remote"
)

// unreachableSeconds is the grace period of Pods of an unreachable Node, and how long to wait for them afterwards: its kubelet cannot
// confirm that they are gone. Disruption budgets still apply.
const unreachableSeconds = 1

// Evictor drains like "kubectl drain": Pods of DaemonSets and static Pods stay, data in emptyDir volumes is lost. Unlike
// kubectl, it requests each eviction once and retries with the next attempt, so that no worker is blocked.
type Evictor struct {
	// Timeout is the timeout of a whole attempt.
	Timeout time.Duration
}

// Drain cordons the Node and evicts its Pods as the rules say. It does not wait for them, but returns the ones that are left. It returns
// an error if it could not request the evictions.
func (e Evictor) Drain(ctx context.Context, workload *remote.Cluster, node *corev1.Node, rules Rules) (Left, error) {
	ctx, cancel := context.WithTimeout(ctx, e.Timeout)
	defer cancel()
	set, err := workload.Clientset(e.Timeout)
	if err != nil {
		return Left{}, fmt.Errorf("creating a client: %w", err)
	}
	return drainOnce(ctx, set, node, rules)
}

// drainOnce makes one attempt.
func drainOnce(ctx context.Context, set kubernetes.Interface, node *corev1.Node, rules Rules) (Left, error) {
	helper := &kubectl.Helper{
		Ctx: ctx, Client: set,
		Force: true, IgnoreAllDaemonSets: true, DeleteEmptyDirData: true, GracePeriodSeconds: -1,
		Out: io.Discard, ErrOut: io.Discard,
	}
	if Unreachable(node) {
		helper.GracePeriodSeconds, helper.SkipWaitForDeleteTimeoutSeconds = unreachableSeconds, unreachableSeconds
	}
	if err := kubectl.RunCordonOrUncordon(helper, node.DeepCopy(), true); err != nil {
		return Left{}, fmt.Errorf("cordoning the Node: %w", err)
	}
	pods, errs := helper.GetPodsForDeletion(node.Name)
	if len(errs) > 0 {
		return Left{}, fmt.Errorf("listing the Pods of the Node: %w", errors.Join(errs...))
	}
	evict, left, err := rules.plan(pods.Pods(), helper.GracePeriodSeconds, time.Now(), readNamespaces(ctx, set))
	if err != nil {
		return Left{}, err
	}
	return evictAll(ctx, helper, evict, left)
}

// readNamespaces returns a function that reads the labels of each namespace once. One that is gone has none.
func readNamespaces(ctx context.Context, set kubernetes.Interface) namespaceLabels {
	known := map[string]labels.Set{}
	return func(name string) (labels.Set, error) {
		if of, ok := known[name]; ok {
			return of, nil
		}
		namespace, err := set.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading namespace %s of the workload cluster, which a MachineDrainRule selects by its labels: %w", name, err)
		}
		known[name] = namespace.Labels
		return known[name], nil
	}
}

// evictAll evicts the Pods, and adds them to what is left.
func evictAll(ctx context.Context, helper *kubectl.Helper, pods []corev1.Pod, left Left) (Left, error) {
	if len(pods) == 0 {
		return left, nil
	}
	version, err := kubectl.CheckEvictionSupport(helper.Client)
	if err != nil {
		return Left{}, fmt.Errorf("checking whether the API server supports evictions: %w", err)
	}
	for i, pod := range pods {
		if version.Empty() {
			err = helper.DeletePod(pod)
		} else {
			err = helper.EvictPod(pod, version)
		}
		switch {
		case apierrors.IsNotFound(err):
		case ctx.Err() != nil: // The next attempt evicts the rest.
			left.Leaving += len(pods) - i
			return left, nil
		case err != nil:
			left.Rejected = append(left.Rejected, rejection(&pod, err))
		default:
			left.Leaving++
		}
	}
	return left, nil
}

// rejection returns why an eviction was rejected.
func rejection(pod *corev1.Pod, err error) Rejection {
	r := Rejection{Pod: nameOf(pod), Reason: err.Error()}
	switch {
	case apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause), apierrors.IsTooManyRequests(err):
		r.Budget, r.Reason = true, "its disruption budget does not allow it"
		if detail := budgetOf(err); detail != "" {
			r.Reason += ": " + detail
		}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		r.Reason = "its namespace is being deleted"
	}
	return r
}

// budgetOf returns what the API server says about the disruption budget: its name, and how many Pods it needs.
func budgetOf(err error) string {
	cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause)
	if !ok {
		return ""
	}
	return strings.TrimSpace(cause.Message)
}

// Unreachable reports whether the kubelet does not respond, so that it can confirm neither that Pods are gone nor that volumes are
// detached. Its taint decides only if the Node has no condition Ready: it is removed some time after the kubelet responds again.
func Unreachable(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionUnknown
		}
	}
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnreachable })
}
