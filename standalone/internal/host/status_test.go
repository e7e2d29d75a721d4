package host

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const yes, no = corev1.ConditionTrue, corev1.ConditionFalse

// conditionAt is a condition with its times.
func conditionAt(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, updated, changed metav1.Time) appsv1.DeploymentCondition {
	return appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: updated, LastTransitionTime: changed}
}

// surging is the status while an old instance serves and the new one does not.
func surging(conditions ...appsv1.DeploymentCondition) appsv1.DeploymentStatus {
	return appsv1.DeploymentStatus{
		Replicas: 2, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1, Conditions: conditions,
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC))
	before, longBefore := metav1.NewTime(now.Add(-59*time.Second)), metav1.NewTime(now.Add(-60*time.Second))
	serving := conditionAt(appsv1.DeploymentAvailable, yes, reasonAvailable, "Deployment has minimum availability.", longBefore, longBefore)
	rolling := func(message string, since metav1.Time) appsv1.DeploymentCondition {
		return conditionAt(appsv1.DeploymentProgressing, yes, reasonUpdated, message, since, longBefore)
	}
	complete := conditionAt(appsv1.DeploymentProgressing, yes, reasonComplete, "The component has started.", longBefore, longBefore)
	failed := state{phase: phaseFailed, message: "broken"}
	failing := observation{state: failed, old: true, oldReady: true}
	tests := []struct {
		reason     string
		generation int64 // observed before; the current one is 2
		before     []appsv1.DeploymentCondition
		seen       observation
		want       appsv1.DeploymentStatus
		left       time.Duration
	}{
		{
			reason: "a rollout begins: the old instance is available, the new one is not", generation: 1,
			before: []appsv1.DeploymentCondition{serving, complete}, seen: observation{state: state{phase: phaseStarting, message: "starting"}, old: true, oldReady: true},
			want: surging(serving, rolling("starting", now)),
			left: time.Minute,
		},
		{
			reason: "another message is no progress", generation: 2,
			before: []appsv1.DeploymentCondition{serving, rolling("starting", before)}, seen: failing,
			want: surging(serving, rolling("broken", before)),
			left: time.Second,
		},
		{
			reason: "the deadline is exceeded", generation: 2,
			before: []appsv1.DeploymentCondition{serving, rolling("broken", longBefore)}, seen: failing,
			want: surging(serving,
				conditionAt(appsv1.DeploymentProgressing, no, reasonDeadline, "Deployment has not become available for 60s: broken", now, now)),
		},
		{
			reason: "another template has its own deadline", generation: 1,
			before: []appsv1.DeploymentCondition{serving, rolling("broken", longBefore)}, seen: failing,
			want: surging(serving, rolling("broken", now)),
			left: time.Minute,
		},
		{
			reason: "the new instance is ready, and the old one is stopping", generation: 2,
			before: []appsv1.DeploymentCondition{serving, rolling("starting", before)}, seen: observation{state: state{phase: phaseReady}},
			want: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{serving, conditionAt(appsv1.DeploymentProgressing, yes, reasonComplete, "The component has started.", now, longBefore)},
			},
		},
		{
			reason: "an image that is not built in fails immediately, and the old instance serves", generation: 1,
			before: []appsv1.DeploymentCondition{serving, complete}, seen: observation{state: state{phase: phaseRefused, message: "unknown"}, old: true, oldReady: true},
			want: appsv1.DeploymentStatus{
				Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1, UnavailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{serving,
					conditionAt(appsv1.DeploymentProgressing, no, reasonDeadline, "unknown", now, now),
					conditionAt(appsv1.DeploymentReplicaFailure, yes, reasonCreate, "unknown", now, now)},
			},
		},
		{
			reason: "a component that fails after its rollout is unavailable, but rolled out", generation: 2,
			before: []appsv1.DeploymentCondition{serving, complete}, seen: observation{state: failed},
			want: appsv1.DeploymentStatus{
				Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
				Conditions: []appsv1.DeploymentCondition{conditionAt(appsv1.DeploymentAvailable, no, reasonUnavailable, "broken", now, now), complete},
			},
		},
		{
			reason: "Recreate has no instance while the old one stops", generation: 1,
			before: []appsv1.DeploymentCondition{serving, complete}, seen: observation{state: state{phase: phaseStopping, message: "stopping"}},
			want: appsv1.DeploymentStatus{
				UnavailableReplicas: 1,
				Conditions:          []appsv1.DeploymentCondition{conditionAt(appsv1.DeploymentAvailable, no, reasonUnavailable, "stopping", now, now), rolling("stopping", now)},
			},
			left: time.Minute,
		},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			d := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Generation: 2},
				Spec:       appsv1.DeploymentSpec{ProgressDeadlineSeconds: ptr.To[int32](60)},
				Status:     appsv1.DeploymentStatus{ObservedGeneration: test.generation, Conditions: test.before},
			}
			test.want.ObservedGeneration = 2
			got := statusFor(d, test.seen, now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if have := untilDeadline(d.Spec, got, now.Time); have != test.left {
				t.Errorf("the deadline ends in %s, want %s", have, test.left)
			}
		})
	}
}
