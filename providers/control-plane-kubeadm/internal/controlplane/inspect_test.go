package controlplane

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// A component that has never been healthy has not regressed.
func TestRegression(t *testing.T) {
	for healthy, want := range map[bool]bool{true: true, false: false} {
		b, f := three(t)
		delete(f.PodObjects, "kube-scheduler-b")
		if !healthy {
			condition.Delete(b.Named("b"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition)
		}
		if _, err := b.take(t.Context(), "inspect"); err != nil {
			t.Fatal(err)
		}
		if b.s.regressed != want || condition.IsTrue(b.Named("b"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition) {
			t.Errorf("healthy before: %t, regressed: %t, want %t", healthy, b.s.regressed, want)
		}
	}
}

// While a workload cluster is unreachable, conditions keep what was known for the grace period. What is known anyway is reported.
func TestInspectWithoutConnection(t *testing.T) {
	const grace = 5 * time.Minute
	lost := report.Unknown("SchedulerPodHealthy", "ConnectionDown", "Last successful probe at %s", object.Now().UTC().Format(time.RFC3339))
	earlier := report.Unknown("SchedulerPodHealthy", "ConnectionDown", "Last successful probe at T")
	for _, tc := range []struct {
		reason    string
		after     time.Duration
		given     func(m *snapshot.Machine)
		want      metav1.Condition
		older     corev1.ConditionStatus
		available metav1.ConditionStatus
		writes    int
	}{
		{
			reason: "for a moment", after: time.Second,
			want: report.True("SchedulerPodHealthy", "Running", ""), older: corev1.ConditionTrue, available: metav1.ConditionTrue,
		},
		{
			reason: "until the grace period ends", after: grace - time.Second,
			want: report.True("SchedulerPodHealthy", "Running", ""), older: corev1.ConditionTrue, available: metav1.ConditionTrue,
		},
		{
			reason: "after it", after: grace,
			want: lost, older: corev1.ConditionUnknown, available: metav1.ConditionUnknown, writes: 3,
		},
		{
			reason: "a manager that has started since does not know when it was lost", after: grace,
			given: func(m *snapshot.Machine) { report.Set(m.Machine, 0, object.Now(), earlier) },
			want:  earlier, older: corev1.ConditionUnknown, available: metav1.ConditionUnknown, writes: 3,
		},
		{
			reason: "a deletion is known", after: time.Second,
			given: func(m *snapshot.Machine) { m.DeletionTimestamp = ptr.To(metav1.NewTime(object.Now())) },
			want:  report.False("SchedulerPodHealthy", "Deleting", "Machine is deleting"), older: corev1.ConditionFalse,
			available: metav1.ConditionTrue, writes: 1,
		},
		{
			reason: "what the spec requires is known", after: time.Second,
			given: func(m *snapshot.Machine) { m.Outdated = []string{"rolloutAfter"} },
			want:  report.True("SchedulerPodHealthy", "Running", ""), older: corev1.ConditionTrue, available: metav1.ConditionTrue, writes: 1,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			b.Workloads = workloads{f}
			if _, err := b.take(t.Context(), "connect", "inspect"); err != nil {
				t.Fatal(err)
			}
			reload(t, b, f)
			if tc.given != nil {
				tc.given(b.Named("a"))
			}
			b.Workloads, b.s, b.API.Writes = unreachable{}, &scope{}, nil
			if _, err := b.take(t.Context(), "connect", "inspect"); err != nil {
				t.Fatal(err)
			}
			b.API.Clock.SetTime(object.Now().Add(tc.after))
			if _, err := b.take(t.Context(), "connect", "inspect"); err != nil {
				t.Fatal(err)
			}
			got := *report.Get(b.Named("a"), tc.want.Type)
			got.LastTransitionTime, got.ObservedGeneration = metav1.Time{}, 0
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("condition of a Machine (-want +got):\n%s", diff)
			}
			if got := condition.Get(b.Named("a"), controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition).Status; got != tc.older {
				t.Errorf("condition of v1beta1 is %s, want %s", got, tc.older)
			}
			certificates := report.True(controlplanev1.KubeadmControlPlaneCertificatesAvailableCondition, "Available", "")
			if got := b.s.availableReport([]metav1.Condition{certificates}); got.Status != tc.available {
				t.Errorf("Available is %s: %s, want %s", got.Status, got.Message, tc.available)
			}
			if got := b.StatusWrites(); got != tc.writes {
				t.Errorf("%d writes of status, want %d", got, tc.writes)
			}
		})
	}
}
