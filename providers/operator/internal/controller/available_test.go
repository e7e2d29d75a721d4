package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUnavailable(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Generation: 2}, Status: appsv1.DeploymentStatus{ObservedGeneration: 2,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}}}}
		change(d)
		return d
	}
	for _, tc := range []struct {
		reason          string
		d               *appsv1.Deployment
		wants, messages string
	}{
		{"available", deployment(func(*appsv1.Deployment) {}), "", ""},
		{"no condition yet", deployment(func(d *appsv1.Deployment) { d.Status.Conditions = nil }),
			"NoDeploymentAvailableConditionReason", "Waiting for Deployment d to be available"},
		{"an outdated condition", deployment(func(d *appsv1.Deployment) { d.Generation = 3 }),
			"NoDeploymentAvailableConditionReason", "Waiting for Deployment d to be available"},
		{"not available", deployment(func(d *appsv1.Deployment) {
			d.Status.Conditions[0] = appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Reason: "MinimumReplicasUnavailable", Message: "m"}
		}), "MinimumReplicasUnavailable", "Waiting for Deployment d to be available: m"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			reason, message := unavailable(tc.d)
			if diff := cmp.Diff([2]string{tc.wants, tc.messages}, [2]string{reason, message}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
