package webhook

import (
	"testing"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
)

func TestIgnitionWarnings(t *testing.T) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	kcp.Spec.KubeadmConfigSpec.Format = bootstrapv1.Ignition
	template := &controlplanev1.KubeadmControlPlaneTemplate{}
	template.Spec.Template.Spec.KubeadmConfigSpec.Format = bootstrapv1.Ignition
	gates := Gates{Ignition: true, ClusterTopology: true}

	// Errors of these objects are tested elsewhere.
	created, _ := controlPlanes{ignition: true}.ValidateCreate(t.Context(), kcp)
	turned, _ := controlPlanes{ignition: true}.ValidateUpdate(t.Context(), &controlplanev1.KubeadmControlPlane{}, kcp)
	kept, _ := controlPlanes{ignition: true}.ValidateUpdate(t.Context(), kcp, kcp)
	templated, _ := templates{gates: gates}.ValidateCreate(t.Context(), template)
	for what, c := range map[string]struct{ got, want int }{
		"a new control plane":                      {len(created), 1},
		"a control plane that changes to ignition": {len(turned), 1},
		"a control plane that already had it":      {len(kept), 0},
		"a template of control planes":             {len(templated), 1},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d warnings, want %d", what, c.got, c.want)
		}
	}
}
