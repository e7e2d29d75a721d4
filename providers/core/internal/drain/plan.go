package drain

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// stuckAfter is how long after the end of its grace period a Pod is reported: a kubelet needs seconds to confirm that it is gone.
const stuckAfter = 30 * time.Second

// plan returns the Pods to evict now, sorted, and what is left besides them. pods are those that a drain takes off a Node: not those of
// DaemonSets, for example. grace is the grace period of evictions in seconds; if it is negative, each Pod has its own.
func (r Rules) plan(pods []corev1.Pod, grace int, now time.Time, namespaces namespaceLabels) (evict []corev1.Pod, left Left, err error) {
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	leaving := map[int32][]corev1.Pod{} // by order
	first := int32(math.MaxInt32)
	for _, pod := range pods {
		if completed(&pod) {
			continue // It needs the Node no longer, and is removed with it.
		}
		drain, err := r.of(&pod, namespaces)
		if err != nil {
			return nil, Left{}, err
		}
		switch drain.Behavior {
		case clusterv1.MachineDrainRuleDrainBehaviorSkip:
		case clusterv1.MachineDrainRuleDrainBehaviorWaitCompleted:
			left.Running = append(left.Running, nameOf(&pod))
			first = min(first, 0)
		default:
			order := ptr.Deref(drain.Order, 0)
			leaving[order] = append(leaving[order], pod)
			first = min(first, order)
		}
	}
	for _, pod := range leaving[first] {
		switch {
		case !terminates(&pod, grace, now):
			evict = append(evict, pod)
		case now.Sub(pod.DeletionTimestamp.Time) > stuckAfter:
			left.Stuck = append(left.Stuck, nameOf(&pod))
		default:
			left.Leaving++
		}
	}
	delete(leaving, first)
	for _, later := range leaving {
		for _, pod := range later {
			left.Later = append(left.Later, nameOf(&pod))
		}
	}
	slices.Sort(left.Later)
	return evict, left, nil
}

func completed(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// terminates reports whether a Pod is terminating, and would not terminate earlier if it were evicted with the grace period.
func terminates(pod *corev1.Pod, grace int, now time.Time) bool {
	if pod.DeletionTimestamp.IsZero() {
		return false
	}
	return grace < 0 || pod.DeletionTimestamp.Sub(now) <= time.Duration(grace)*time.Second
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
