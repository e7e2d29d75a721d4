package controlplane

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

// An error about certificates does not affect add-ons.
func TestMaintainWithoutCertificates(t *testing.T) {
	b, f := three(t)
	f.CertificateError = errors.New("no connection")
	b.Machines[0].Config = &bootstrapv1.KubeadmConfig{}
	for range 2 {
		if _, err := b.take(t.Context(), "maintain"); !errors.Is(err, f.CertificateError) {
			t.Errorf("error %v, want %v", err, f.CertificateError)
		}
	}
	if want := []string{"maintain v1.30.0"}; !slices.Equal(want, f.Actions()) {
		t.Errorf("actions %q, want %q: once, regardless of the certificates", f.Actions(), want)
	}
}

// After a timeout, add-ons are not retried with errors, but when the backoff ends or the connection is replaced.
func TestMaintainWaitsForTheWorkloadCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := three(t)
		b.Clock = clock.RealClock{} // that of the bubble
		maintain := func(w connection.Workload) (time.Duration, error) {
			b.Workloads, b.s.connection = connected{w}, connection.State{}
			result, err := b.take(t.Context(), "connect", "maintain")
			return result.After(), err
		}
		if _, err := maintain(&kcptest.Unresponsive{Workload: f}); err == nil || errors.Is(err, connection.ErrBackoff) {
			t.Errorf("error %v, want that of the timeout", err)
		}
		if after, err := maintain(f); err != nil || after != 5*time.Second {
			t.Errorf("during the backoff it is reconciled after %s, error %v; want 5s and none", after, err)
		}
		f.Since = time.Now()
		if after, err := maintain(f); err != nil || after != 0 {
			t.Errorf("with a new connection it is reconciled after %s, error %v; want never and none", after, err)
		}
		if want := []string{"maintain v1.30.0"}; !slices.Equal(want, f.Actions()) {
			t.Errorf("actions %q, want %q", f.Actions(), want)
		}
	})
}
