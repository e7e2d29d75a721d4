package apply

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
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

// warning returns an Event of type Warning about a Pod, this long after the first.
func warning(name, pod, message string, after time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "ns", Name: name},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "ns", Name: pod},
		Type:           corev1.EventTypeWarning, Reason: "FailedMount", Message: message, LastTimestamp: metav1.Time{Time: time.Unix(1e9, 0).Add(after)},
	}
}

// A Pod that waits for a volume has no reason in its status: the error of the wait has that of the latest warning.
func TestWaitAvailableReportsVolumes(t *testing.T) {
	d := deployment(appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "no minimum availability"})
	d.UID, d.Annotations = "d", map[string]string{RevisionAnnotation: "2"}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "d"}}
	labeled := func(name, owner, kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Labels: d.Spec.Selector.MatchLabels,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner, UID: types.UID(owner), Controller: ptr.To(true)}},
		}
	}
	earlier, current := &appsv1.ReplicaSet{ObjectMeta: labeled("earlier", "d", "Deployment")}, &appsv1.ReplicaSet{ObjectMeta: labeled("current", "d", "Deployment")}
	earlier.Annotations, current.Annotations = map[string]string{RevisionAnnotation: "1"}, map[string]string{RevisionAnnotation: "2"}
	creating := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "manager", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}}}
	objects := []client.Object{
		d, earlier, current,
		&corev1.Pod{ObjectMeta: labeled("a", "earlier", "ReplicaSet"), Status: creating},
		&corev1.Pod{ObjectMeta: labeled("b", "current", "ReplicaSet"), Status: creating},
		warning("1", "a", "of the earlier version", time.Hour), warning("2", "b", "earlier", 0),
		warning("3", "b", `secret "cert" not found`, time.Minute), warning("4", "c", "of another Pod", time.Hour),
	}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).
		WithIndex(&corev1.Event{}, "type", func(o client.Object) []string { return []string{o.(*corev1.Event).Type} }).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Name} }).
		Build()
	err := WaitAvailable(t.Context(), c, client.ObjectKeyFromObject(d), 20*time.Millisecond, nil)
	const want = "Deployment ns/d is not available after 20ms: no minimum availability: see `kubectl -n ns describe deployment d`: " +
		`the containers of Pod b are not created: FailedMount: secret "cert" not found`
	if err == nil || err.Error() != want {
		t.Errorf("WaitAvailable(): got %v, want %s", err, want)
	}
}
