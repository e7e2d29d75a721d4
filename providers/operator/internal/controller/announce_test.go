package controller

import (
	"testing"

	"k8s.io/utils/ptr"

	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/engine"
	"sigs.k8s.io/cluster-api/providers/operator/internal/source"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// TestUpgradeIsAnnounced: also if the process that upgraded the provider was killed before it could.
func TestUpgradeIsAnnounced(t *testing.T) {
	for _, tc := range []struct {
		reason           string
		reported, before string
		want             bool
	}{
		{"an installation", "", "", false},
		{"an adoption", "", "v2.0.1", false},
		{"an upgrade of what clusterctl has installed", "", "v2.0.0", true},
		{"an upgrade", "v2.0.0", "v2.0.0", true},
		{"an upgrade by a process that was killed", "v2.0.0", "v2.0.1", true},
		{"a change", "v2.0.1", "v2.0.1", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			p := provider("a", "", false)
			if tc.reported != "" {
				p.GetStatus().InstalledVersion = ptr.To(tc.reported)
			}
			s := &scope{Provider: p, found: &source.Release{Version: "v2.0.1"}}
			(&Controller{}).announce(t.Context(), s, engine.Outcome{Before: tc.before})
			if got := condition.IsTrue(s.Object, operatorv1.ProviderUpgradedCondition); got != tc.want {
				t.Errorf("ProviderUpgraded is True: %t, want %t", got, tc.want)
			}
		})
	}
}
