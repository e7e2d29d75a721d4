package replace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet and the scheduler need not set messages.
func TestFailure(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "manager", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	for _, tc := range []struct {
		reason string
		status corev1.PodStatus
		want   string
	}{
		{"a reason with a message", waiting("ErrImagePull", "not found"), "container manager of Pod p: ErrImagePull: not found"},
		{"a reason alone", waiting("ErrImagePull", ""), "container manager of Pod p: ErrImagePull"},
		{"a Pod that is not scheduled", corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}}, "Pod p: Unschedulable"},
		{"without a reason, either", corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse}}}, "Pod p is not scheduled"},
	} {
		if got, _ := failure(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: tc.status}); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
		}
	}
}
