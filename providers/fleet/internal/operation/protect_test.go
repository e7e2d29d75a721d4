package operation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

func TestProtect(t *testing.T) {
	const finalizer = "test/operation"
	labels := map[string]string{clusterv1.ClusterNameLabel: "c"}
	deleted := &metav1.Time{Time: time.Unix(1, 0)}
	for _, tt := range []struct {
		reason       string
		before, want metav1.ObjectMeta
		phase, after fleetv1.OperationPhase
		stays, ends  bool
		holds        bool
	}{
		{reason: "new", want: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{}, Finalizers: []string{finalizer}}},
		{
			reason: "at work, so that it cannot be moved", phase: fleetv1.OperationPhaseRunning, after: fleetv1.OperationPhaseRunning, stays: true,
			want: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{BlockMoveAnnotation: ""}, Finalizers: []string{finalizer}},
		},
		{
			reason: "being deleted at work: the finalizer stays as it is", phase: fleetv1.OperationPhaseRunning, after: fleetv1.OperationPhaseRunning,
			before: metav1.ObjectMeta{DeletionTimestamp: deleted},
			want:   metav1.ObjectMeta{DeletionTimestamp: deleted, Labels: labels, Annotations: map[string]string{}},
		},
		{
			reason: "ended", phase: fleetv1.OperationPhaseFailed, after: fleetv1.OperationPhaseFailed, stays: true, ends: true,
			before: metav1.ObjectMeta{Annotations: map[string]string{BlockMoveAnnotation: ""}, Finalizers: []string{finalizer}},
			want: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "Failed"},
				Finalizers: []string{}},
		},
		{
			reason: "ended, and the control plane waits for its deletion", phase: fleetv1.OperationPhaseFailed, after: fleetv1.OperationPhaseFailed,
			ends: true, holds: true, before: metav1.ObjectMeta{Finalizers: []string{finalizer}},
			want: metav1.ObjectMeta{Labels: labels, Finalizers: []string{finalizer},
				Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "Failed", BlockMoveAnnotation: ""}},
		},
		{
			reason: "a copy without status of one that has ended", after: fleetv1.OperationPhaseCompleted, ends: true,
			before: metav1.ObjectMeta{Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "Completed"}},
			want:   metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "Completed"}},
		},
		{
			reason: "an annotation that is none of ours",
			before: metav1.ObjectMeta{Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "yes"}},
			want: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{fleetv1.OperationEndedAnnotation: "yes"},
				Finalizers: []string{finalizer}},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			o := &fleetv1.ControlPlaneRestore{ObjectMeta: tt.before}
			o.Status.Phase = tt.phase
			result := Protect(o, &o.Status.Phase, Protection{Finalizer: finalizer, Cluster: "c", Stays: tt.stays, Holds: tt.holds})
			if diff := cmp.Diff(tt.want, o.ObjectMeta); diff != "" || result.Ends() != tt.ends || o.Status.Phase != tt.after {
				t.Errorf("ends: %t, phase %q, -want +got:\n%s", result.Ends(), o.Status.Phase, diff)
			}
		})
	}
}
