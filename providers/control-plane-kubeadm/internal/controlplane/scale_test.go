package controlplane

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// A control plane is reconciled at the time at which the first of its Machines must be replaced, even if nothing happens until
// then.
func TestReconciledWhenARolloutIsDue(t *testing.T) {
	week := controlplanev1.KubeadmControlPlaneRolloutBeforeSpec{CertificatesExpiryDays: 7}
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(object.Now().Add(d)) }
	const day = 24 * time.Hour
	tests := []struct {
		reason  string
		rollout controlplanev1.KubeadmControlPlaneRolloutSpec
		expiry  [3]metav1.Time
		want    time.Duration
	}{
		{reason: "no rollout is scheduled", expiry: [3]metav1.Time{at(9 * day)}},
		{reason: "a rollout of all Machines", rollout: controlplanev1.KubeadmControlPlaneRolloutSpec{After: at(time.Hour)}, want: time.Hour},
		{
			reason: "the certificates that expire first", rollout: controlplanev1.KubeadmControlPlaneRolloutSpec{Before: week},
			expiry: [3]metav1.Time{at(30 * day), at(9*day + time.Second), at(10 * day)}, want: 2*day + time.Second,
		},
		{
			reason: "the expiry of some certificates has not been read yet", rollout: controlplanev1.KubeadmControlPlaneRolloutSpec{Before: week},
			expiry: [3]metav1.Time{1: at(30 * day)}, want: 23 * day,
		},
		{
			reason: "the earlier of both", rollout: controlplanev1.KubeadmControlPlaneRolloutSpec{After: at(time.Hour), Before: week},
			expiry: [3]metav1.Time{at(8 * day), at(8 * day), at(8 * day)}, want: time.Hour,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b, _ := three(t)
			*b.KCP.Spec.Replicas = 3
			b.KCP.Spec.Rollout = tt.rollout
			spec, err := snapshot.SpecOf(t.Context(), b.KCP)
			testenv.Must(t, err)
			for i, m := range b.Machines {
				m.Status.CertificatesExpiryDate = tt.expiry[i]
				testenv.Must(t, m.Compare(t.Context(), spec, b.API.Clock))
			}
			result, err := b.take(t.Context(), "plan", "scale")
			if err != nil || result.After() != tt.want {
				t.Errorf("reconciled again after %s, error %v; want after %s", result.After(), err, tt.want)
			}
		})
	}
}
