package controlplane

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// What expires soon is in the message of CertificatesAvailable, which stays true, and the same for days.
func TestExpiryMessage(t *testing.T) {
	const day = 24 * time.Hour
	date := func(in time.Duration) string { return object.Now().Add(in).UTC().Format(time.DateOnly) }
	cases := []struct {
		reason string
		ca     time.Duration
		// machine is when the certificates of Machine a expire; 0: unknown.
		machine time.Duration
		before  int32
		want    string
	}{
		{reason: "nothing expires soon", ca: 300 * day, machine: 200 * day},
		{reason: "not yet", ca: 30*day + time.Hour},
		{reason: "a CA", ca: 30*day - time.Hour, want: "* The CA in Secret c-ca expires on " + date(30*day-time.Hour)},
		{reason: "a CA that has expired", ca: -day, want: "* The CA in Secret c-ca expired on " + date(-day)},
		{reason: "a Machine", ca: 300 * day, machine: 20 * day, want: "* The certificate of Machine a expires on " + date(20*day)},
		{reason: "a Machine that is replaced in time", ca: 300 * day, machine: 20 * day, before: 7},
		{
			reason: "both", ca: 20 * day, machine: 10 * day,
			want: "* The CA in Secret c-ca expires on " + date(20*day) + "\n* The certificate of Machine a expires on " + date(10*day),
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, f := three(t)
			b.Workloads = workloads{f}
			pair, err := pki.NewKeys(pki.ECDSA).GenerateUntil(pki.ClusterCA, object.Now().Add(-100*day), object.Now().Add(tc.ca))
			if err != nil {
				t.Fatal(err)
			}
			key := pki.SecretKey(b.Key(), pki.ClusterCA)
			secret := &corev1.Secret{}
			if err := b.API.Get(t.Context(), key, secret); err == nil {
				secret.Data = pair.Data()
				testenv.Must(t, b.API.Update(t.Context(), secret))
			} else {
				testenv.Must(t, b.API.Create(t.Context(), pki.NewSecret(b.Key(), pki.ClusterCA, pair.Data(), b.Owner())))
			}
			b.KCP.Spec.Rollout.Before.CertificatesExpiryDays = tc.before
			if tc.machine != 0 {
				b.Named("a").Status.CertificatesExpiryDate = metav1.NewTime(object.Now().Add(tc.machine))
			}
			b.declared()
			c := b.controller
			b.s.ControlPlane = b.ControlPlane
			if _, err := c.certificates(t.Context(), b.s); err != nil {
				t.Logf("other Secrets: %v", err)
			}
			condition.Set(b.KCP, condition.True(controlplanev1.CertificatesAvailableV1Beta1Condition))
			got := b.s.certificatesReport(c.expiryMessage(b.s, object.Now()))
			if got.Message != tc.want || got.Status != metav1.ConditionTrue || got.Reason != clusterv1.AvailableReason {
				t.Errorf("got %s %s %q, want the message %q", got.Status, got.Reason, got.Message, tc.want)
			}
			if again := c.expiryMessage(b.s, object.Now().Add(time.Hour)); again != tc.want && tc.reason != "not yet" {
				t.Errorf("an hour later: %q", again)
			}
		})
	}
}
