package remediation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

func TestRetries(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	remediated := func(ago time.Duration, retries string) map[string]string {
		return map[string]string{controlplanev1.RemediationForAnnotation: `{"machine":"old","timestamp":"` +
			now.Add(-ago).Format(time.RFC3339) + `","retryCount":` + retries + `}`}
	}
	cases := []struct {
		reason      string
		annotations map[string]string
		strategy    *controlplanev1.RemediationStrategy
		retry       int32
		wait        time.Duration
		postponed   bool
	}{
		{reason: "the first failure"},
		{reason: "a replacement that failed soon", annotations: remediated(time.Minute, "2"), retry: 3},
		{reason: "a replacement that failed later", annotations: remediated(2*time.Hour, "2")},
		{reason: "within the retry period", annotations: remediated(time.Minute, "0"), strategy: &controlplanev1.RemediationStrategy{RetryPeriod: metav1.Duration{Duration: 5 * time.Minute}}, postponed: true, wait: 4 * time.Minute},
		{reason: "too many retries", annotations: remediated(time.Minute, "3"), strategy: &controlplanev1.RemediationStrategy{MaxRetry: ptr.To[int32](3)}, postponed: true, wait: 59 * time.Minute},
		{
			reason: "after a shorter minHealthyPeriod it is not a retry", annotations: remediated(time.Minute, "3"),
			strategy: &controlplanev1.RemediationStrategy{MaxRetry: ptr.To[int32](3), MinHealthyPeriod: &metav1.Duration{Duration: 30 * time.Second}},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			kcp := &controlplanev1.KubeadmControlPlane{}
			kcp.Spec.RemediationStrategy = tc.strategy
			state := membership.State{ControlPlane: &snapshot.ControlPlane{KCP: kcp, Cluster: &clusterv1.Cluster{}}}
			m := &snapshot.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: tc.annotations}}}
			failure, got := firstFailure(state, m, nil, now), retryOf(kcp, m, now).record
			if (failure != nil) != tc.postponed || failure != nil && failure.RetryAfter != tc.wait {
				t.Fatalf("%s: postponed %+v, want %t for %s", tc.reason, failure, tc.postponed, tc.wait)
			}
			if failure == nil && got.RetryCount != tc.retry {
				t.Errorf("%s: retry %d, want %d", tc.reason, got.RetryCount, tc.retry)
			}
		})
	}
}
