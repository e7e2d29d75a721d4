package remediation

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/membership"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestRetries(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	remediated := func(ago time.Duration, retries string) map[string]string {
		return map[string]string{controlplanev1.RemediationForAnnotation: `{"machine":"old","timestamp":"` +
			now.Add(-ago).Format(time.RFC3339) + `","retryCount":` + retries + `}`}
	}
	type limits = controlplanev1.KubeadmControlPlaneRemediationSpec
	cases := []struct {
		reason      string
		annotations map[string]string
		limits      limits
		retry       int32
		wait        time.Duration
		message     string // if it is postponed
	}{
		{reason: "the first failure"},
		{reason: "a replacement that failed soon", annotations: remediated(time.Minute, "2"), retry: 3},
		{reason: "a replacement that failed later", annotations: remediated(2*time.Hour, "2")},
		{reason: "within the retry period", annotations: remediated(time.Minute, "0"), limits: limits{RetryPeriodSeconds: ptr.To[int32](300)}, wait: 4 * time.Minute,
			message: "KubeadmControlPlane can't remediate this Machine because the operation already failed in the latest 5m0s (RetryPeriodSeconds)"},
		{reason: "too many retries", annotations: remediated(time.Minute, "3"), limits: limits{MaxRetry: ptr.To[int32](3)}, wait: 59 * time.Minute,
			message: "KubeadmControlPlane can't remediate this Machine because the operation already failed 3 times (MaxRetry)"},
		{
			reason: "after a shorter minHealthyPeriod it is not a retry", annotations: remediated(time.Minute, "3"),
			limits: limits{MaxRetry: ptr.To[int32](3), MinHealthyPeriodSeconds: ptr.To[int32](30)},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			kcp := &controlplanev1.KubeadmControlPlane{}
			kcp.Spec.Remediation = tc.limits
			state := membership.State{ControlPlane: &snapshot.ControlPlane{KCP: kcp, Cluster: &clusterv1.Cluster{}}}
			m := &snapshot.Machine{Machine: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: tc.annotations}}}
			failure, got := firstFailure(state, m, nil, now), retryOf(kcp, m, now).record
			if (failure != nil) != (tc.message != "") || failure != nil && (failure.RetryAfter != tc.wait || failure.Reason != tc.message) {
				t.Fatalf("%s: postponed %+v, want %q for %s", tc.reason, failure, tc.message, tc.wait)
			}
			if failure == nil && got.RetryCount != tc.retry {
				t.Errorf("%s: retry %d, want %d", tc.reason, got.RetryCount, tc.retry)
			}
		})
	}
}

// Managers of other versions of Cluster API read the annotation, too.
func TestRecord(t *testing.T) {
	kcp, at := &controlplanev1.KubeadmControlPlane{}, metav1.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	testenv.Must(t, begin(kcp, &record{Machine: "m", Timestamp: at}))
	const want = `{"machine":"m","timestamp":"2026-01-01T12:00:00Z","retryCount":0}`
	if got := kcp.Annotations[controlplanev1.RemediationInProgressAnnotation]; got != want {
		t.Errorf("annotation %s, want %s", got, want)
	}
	if last := kcp.Status.LastRemediation; last.Machine != "m" || !last.Time.Equal(&at) || ptr.Deref(last.RetryCount, 1) != 0 {
		t.Errorf("status %+v", last)
	}
}
