package controlplane

import (
	"errors"
	"slices"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
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
