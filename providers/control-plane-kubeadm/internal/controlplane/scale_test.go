package controlplane

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// A control plane is reconciled at the time at which the first of its Machines must be replaced, even if nothing happens until
// then.
func TestReconciledWhenARolloutIsDue(t *testing.T) {
	week := &controlplanev1.RolloutBefore{CertificatesExpiryDays: ptr.To[int32](7)}
	at := func(d time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(object.Now().Add(d))) }
	const day = 24 * time.Hour
	tests := []struct {
		reason string
		spec   controlplanev1.KubeadmControlPlaneSpec
		expiry [3]*metav1.Time
		want   time.Duration
	}{
		{reason: "no rollout is scheduled", expiry: [3]*metav1.Time{at(9 * day)}},
		{reason: "a rollout of all Machines", spec: controlplanev1.KubeadmControlPlaneSpec{RolloutAfter: at(time.Hour)}, want: time.Hour},
		{
			reason: "the certificates that expire first", spec: controlplanev1.KubeadmControlPlaneSpec{RolloutBefore: week},
			expiry: [3]*metav1.Time{at(30 * day), at(9*day + time.Second), at(10 * day)}, want: 2*day + time.Second,
		},
		{
			reason: "the expiry of some certificates has not been read yet", spec: controlplanev1.KubeadmControlPlaneSpec{RolloutBefore: week},
			expiry: [3]*metav1.Time{nil, at(30 * day), nil}, want: 23 * day,
		},
		{
			reason: "the earlier of both", spec: controlplanev1.KubeadmControlPlaneSpec{RolloutAfter: at(time.Hour), RolloutBefore: week},
			expiry: [3]*metav1.Time{at(8 * day), at(8 * day), at(8 * day)}, want: time.Hour,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			b, _ := three(t)
			*b.KCP.Spec.Replicas = 3
			b.KCP.Spec.RolloutAfter, b.KCP.Spec.RolloutBefore = tt.spec.RolloutAfter, tt.spec.RolloutBefore
			for i, m := range b.Machines {
				m.Status.CertificatesExpiryDate = tt.expiry[i]
				m.Compare(b.KCP, b.API.Clock)
			}
			result, err := b.take(t.Context(), "plan", "scale")
			if err != nil || result.After() != tt.want {
				t.Errorf("reconciled again after %s, error %v; want after %s", result.After(), err, tt.want)
			}
		})
	}
}
