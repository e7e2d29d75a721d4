package webhook

import (
	"maps"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm/kubeadmtest"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// Numbers are rejected with their field's name, or any value of them works.
func TestNumbers(t *testing.T) {
	numbers := func(prefix string) map[string]object.Number {
		return map[string]object.Number{
			prefix + "rolloutBefore.certificatesExpiryDays": {Rejected: []any{-1, 0, 6}, Accepted: []any{7, math.MaxInt32}},
			prefix + "rolloutAfter":                         {Because: "any time is compared"},
			prefix + "rolloutStrategy.rollingUpdate.maxSurge": {
				Rejected: []any{-1, 2, math.MaxInt32, "100%", "x", ""}, Accepted: []any{1}},
			prefix + "remediationStrategy.maxRetry":         {Accepted: []any{-1, math.MaxInt32}, Because: "a negative number allows no retry"},
			prefix + "remediationStrategy.retryPeriod":      {Accepted: []any{-time.Second, time.Duration(math.MaxInt64)}, Because: "a negative period is over"},
			prefix + "remediationStrategy.minHealthyPeriod": {Accepted: []any{-time.Second, time.Duration(math.MaxInt64)}, Because: "a negative period is over"},
		}
	}
	table := map[string]object.Number{"KubeadmControlPlane.replicas": {Rejected: []any{-1, 0, 2, math.MaxInt32 - 1}, Accepted: []any{1, math.MaxInt32}}}
	for kind, spec := range map[string]string{"KubeadmControlPlane": "", "KubeadmControlPlaneTemplate": "template.spec."} {
		maps.Copy(table, numbers(kind+"."+spec))
		maps.Copy(table, kubeadmtest.Numbers(kind+"."+spec+"kubeadmConfigSpec."))
	}
	elsewhere := map[string]string{
		"nodeDrainTimeout":        "a negative timeout counts as none",
		"nodeVolumeDetachTimeout": "a negative timeout counts as none",
		"nodeDeletionTimeout":     "a negative timeout has passed",
	}
	object.CheckNumbers(t, table, elsewhere, map[string]object.Numbered{
		"KubeadmControlPlane": {
			New: func() any { return &controlplanev1.KubeadmControlPlane{} },
			Validate: func(o any) field.ErrorList {
				return controlPlanes{}.validate(nil, o.(*controlplanev1.KubeadmControlPlane))
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
		s.KubeadmConfigSpec.JoinConfiguration = &bootstrapv1.JoinConfiguration{Discovery: bootstrapv1.Discovery{Timeout: &metav1.Duration{Duration: -1}}}
	}
	scaled := func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Replicas = ptr.To[int32](5) }
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t, negative), valid(t, negative, scaled)); err != nil {
		t.Error(err)
	}
	if _, err := (controlPlanes{}).ValidateUpdate(t.Context(), valid(t), valid(t, negative, scaled)); err == nil {
		t.Error("a new value is accepted")
	}
}
