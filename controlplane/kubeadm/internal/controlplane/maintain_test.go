package controlplane

import (
	"errors"
	"slices"
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
)

// A certificate that cannot be seen keeps nothing else from being looked after.
func TestMaintainWithoutCertificates(t *testing.T) {
	b, f := three(t)
	f.hidden = errors.New("no connection")
	b.machines[0].config = &bootstrapv1.KubeadmConfig{}
	for range 2 {
		if _, err := b.maintain(t.Context(), b.scope); !errors.Is(err, f.hidden) {
			t.Errorf("error %v, want %v", err, f.hidden)
		}
	}
	if want := []string{"maintain v1.30.0"}; !slices.Equal(want, f.actions()) {
		t.Errorf("actions %q, want %q: once, whatever the certificates", f.actions(), want)
	}
}
