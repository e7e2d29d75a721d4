package apply

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func deployment(conditions ...appsv1.DeploymentCondition) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "ns"},
		Status:     appsv1.DeploymentStatus{Conditions: conditions},
	}
}

func TestWaitAvailable(t *testing.T) {
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	refused := appsv1.DeploymentCondition{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "image x is not known here"}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(deployment(refused)).WithStatusSubresource(&appsv1.Deployment{}).Build()
	key := client.ObjectKey{Namespace: "ns", Name: "d"}

	err := WaitAvailable(t.Context(), c, key, 20*time.Millisecond, nil)
	if err == nil || !strings.Contains(err.Error(), "Deployment ns/d is not available after 20ms: image x is not known here") {
		t.Errorf("a Deployment that stays unavailable must be reported with its reason, got: %v", err)
	}

	reasons := make(chan string, 10)
	done := make(chan error, 1)
	go func() { done <- WaitAvailable(t.Context(), c, key, time.Minute, func(r string) { reasons <- r }) }()
	if got := <-reasons; got != "image x is not known here" {
		t.Errorf("report: got %q", got)
	}
	live := &appsv1.Deployment{}
	if err := c.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	live.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}}
	if err := c.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("WaitAvailable(): %v", err)
	}
}

// A Deployment that has given up is not waited for, unless that was with an older spec.
func TestWaitAvailableEndsWithTheDeployment(t *testing.T) {
	d := deployment(appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "capi does not run x"})
	d.Generation, d.Status.ObservedGeneration = 2, 2
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(d).WithStatusSubresource(&appsv1.Deployment{}).Build()
	err := WaitAvailable(t.Context(), c, client.ObjectKeyFromObject(d), time.Hour, nil)
	const want = "Deployment ns/d does not start: capi does not run x: see `kubectl -n ns describe pods`"
	if err == nil || err.Error() != want {
		t.Errorf("WaitAvailable(): got %v, want %s", err, want)
	}
	d.Generation = 3
	if reason := Stuck(d); reason != "" {
		t.Errorf("the new spec has not been tried, but the Deployment is stuck: %s", reason)
	}
}

func TestAvailability(t *testing.T) {
	condition := func(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, message string) appsv1.DeploymentCondition {
		return appsv1.DeploymentCondition{Type: kind, Status: status, Message: message}
	}
	available := condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "")
	tests := []struct {
		reason     string
		replicas   *int32
		generation int64
		status     appsv1.DeploymentStatus
		want       string
	}{
		{reason: "all replicas are new and available",
			status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}}},
		{reason: "none are wanted", replicas: ptr.To[int32](0),
			status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{available}}},
		{reason: "what the status says is of the old spec", generation: 2,
			status: appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}},
			want:   "the latest spec has not been observed yet"},
		{reason: "why the old spec did not run does not matter", generation: 2,
			status: appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{
				condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "image x is not known here")}},
			want: "the latest spec has not been observed yet"},
		{reason: "the available Pod is the old one, and the new one has not been made",
			status: appsv1.DeploymentStatus{Replicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}},
			want:   "0 of 1 replicas updated"},
		{reason: "the available Pod is the old one, and the new one does not start",
			status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}},
			want:   "1 old replicas are pending termination"},
		{reason: "a rollout that is stuck says why",
			status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available,
				condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "deadline exceeded")}},
			want: "deadline exceeded"},
		{reason: "one of two is available", replicas: ptr.To[int32](2),
			status: appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{available}},
			want:   "1 of 2 replicas available"},
		{reason: "a condition without a message is explained by its reason",
			status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable"}}},
			want: "MinimumReplicasUnavailable"},
		{reason: "one without message and reason is explained by the rollout",
			status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "")}},
			want:   "0 of 1 replicas updated"},
		{reason: "if that is complete, only the status of the condition is left",
			status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
				condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "")}},
			want: "its condition Available is False"},
		{reason: "without a condition it is not available",
			status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
			want:   "it has no Available condition yet"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: tt.generation}, Spec: appsv1.DeploymentSpec{Replicas: tt.replicas}, Status: tt.status}
			done, got := availability(d)
			if diff := cmp.Diff(tt.want, got); diff != "" || done != (tt.want == "") {
				t.Errorf("%s: done %v (-want +got):\n%s", tt.reason, done, diff)
			}
		})
	}
}

func TestExplanation(t *testing.T) {
	for want, parts := range map[string][]string{
		"":                        {"", " "},
		"Waiting for d":           {"Waiting for d", ""},
		"Pod p: Unschedulable":    {"Pod p", "Unschedulable", "\n"},
		"Pod p: BackOff: image x": {"Pod p", "BackOff", "image x"},
	} {
		if got := Explanation(parts...); got != want {
			t.Errorf("Explanation(%q) = %q, want %q", parts, got, want)
		}
	}
}

// An object may be not ready without a reason that is known.
func TestUntilWithoutReason(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(deployment()).Build()
	w := &Wait{Client: c, Timeout: time.Millisecond, What: "Deployment ns/d is not ready"}
	err := w.Until(t.Context(), deployment(), &appsv1.DeploymentList{}, func(client.Object) (bool, string) { return false, "" })
	const want = "Deployment ns/d is not ready after 1ms: see `kubectl -n ns describe deployment d`"
	if err == nil || err.Error() != want {
		t.Errorf("got: %v\nwant: %s", err, want)
	}
}
