package webhook

import (
	"maps"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Numbers are rejected with their field's name, or any value of them works.
func TestNumbers(t *testing.T) {
	numbers := func(prefix string) map[string]object.Number {
		return map[string]object.Number{
			prefix + "rollout.before.certificatesExpiryDays": {Rejected: []any{-1, 6}, Accepted: []any{0, 7, math.MaxInt32}},
			prefix + "rollout.after":                         {Because: "any time is compared"},
			prefix + "rollout.strategy.rollingUpdate.maxSurge": {
				Rejected: []any{-1, 2, math.MaxInt32, "100%", "x", ""}, Accepted: []any{1}},
			prefix + "remediation.maxRetry":                {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number allows no retry"},
			prefix + "remediation.retryPeriodSeconds":      {Accepted: []any{-1, math.MaxInt32}, Because: "a negative period is over"},
			prefix + "remediation.minHealthyPeriodSeconds": {Accepted: []any{-1, math.MaxInt32}, Because: "a negative period is over"},
		}
	}
	table := map[string]object.Number{"KubeadmControlPlane.replicas": {Rejected: []any{-1, 0, 2, math.MaxInt32 - 1}, Accepted: []any{1, math.MaxInt32}}}
	for kind, spec := range map[string]string{"KubeadmControlPlane": "", "KubeadmControlPlaneTemplate": "template.spec."} {
		maps.Copy(table, numbers(kind+"."+spec))
		maps.Copy(table, kubeadmtest.Numbers(kind+"."+spec+"kubeadmConfigSpec."))
	}
	elsewhere := map[string]string{
		"nodeDrainTimeoutSeconds":        "a negative timeout counts as none",
		"nodeVolumeDetachTimeoutSeconds": "a negative timeout counts as none",
		"nodeDeletionTimeoutSeconds":     "a negative timeout has passed",
	}
	object.CheckNumbers(t, table, elsewhere, map[string]object.Numbered{
		"KubeadmControlPlane": {
			New: func() any { return &controlplanev1.KubeadmControlPlane{} },
			Validate: func(o any) field.ErrorList {
				all, err := controlPlanes{}.validate(t.Context(), nil, o.(*controlplanev1.KubeadmControlPlane))
				testenv.Must(t, err)
				return all
			},
		},
		"KubeadmControlPlaneTemplate": {
			New: func() any { return &controlplanev1.KubeadmControlPlaneTemplate{} },
			Validate: func(o any) field.ErrorList {
				_, err := templates{gates: Gates{ClusterTopology: true}}.ValidateCreate(t.Context(), o.(*controlplanev1.KubeadmControlPlaneTemplate))
				return object.FieldErrors(err)
			},
		},
	})
}

// TestStoredNumbers: what was stored before a rule existed does not prevent other changes.
func TestStoredNumbers(t *testing.T) {
	negative := func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.KubeadmConfigSpec.JoinConfiguration.Timeouts.TLSBootstrapSeconds = ptr.To[int32](-1)
	}
	scaled := func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Replicas = ptr.To[int32](5) }
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t, negative), valid(t, negative, scaled)); err != nil {
		t.Error(err)
	}
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t), valid(t, negative, scaled)); err == nil {
		t.Error("a new value is accepted")
	}
}
