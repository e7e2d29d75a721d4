package upgrade

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpgrading(t *testing.T) {
	upgraded := ControlPlane{Exists: true, Version: "v2"}
	const kind = "KubeadmControlPlane"
	for _, tt := range []struct {
		reason   string
		plan     Plan
		blocking string
		want     string
		lines    []string
	}{
		{reason: "a new cluster does not upgrade", plan: Plan{Version: "v2", ControlPlane: "v2"}},
		{reason: "nor does one that is provisioned", plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: ControlPlane{Exists: true, Version: "v2", Provisioning: true}}},
		{reason: "creation alone is no upgrade", plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded, MachineDeployments: Sequence{Creating: []string{"md"}}}},
		{
			reason: "the control plane upgrades, workers wait",
			plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: ControlPlane{Exists: true, Version: "v2", Upgrading: true},
				MachineDeployments: Sequence{Pending: []string{"a", "b"}, Creating: []string{"c"}}},
			want: "ClusterUpgrading",
			lines: []string{kind + " upgrading to version v2", "MachineDeployments a, b pending upgrade to version v2",
				"MachineDeployment c creation deferred while control plane upgrade is in progress"},
		},
		{
			reason: "the upgrade begins with this reconcile", plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: ControlPlane{Exists: true, Version: "v1"}},
			want: "ClusterUpgrading", lines: []string{kind + " upgrading to version v2"},
		},
		{
			reason: "a hook blocks the upgrade", blocking: "BeforeClusterUpgrade: later",
			plan: Plan{Version: "v2", ControlPlane: "v1", ControlPlanePending: true, Remaining: Chain{ControlPlane: []string{"v2"}}, controlPlane: ControlPlane{Exists: true, Version: "v1"}},
			want: "ClusterUpgrading",
			lines: []string{"Following hooks are blocking upgrade: BeforeClusterUpgrade: later",
				kind + " pending upgrade to version v2"},
		},
		{
			reason: "an earlier upgrade has to end first",
			plan: Plan{Version: "v3", ControlPlane: "v2", ControlPlanePending: true, Remaining: Chain{ControlPlane: []string{"v3"}},
				controlPlane: ControlPlane{Exists: true, Version: "v2", Upgrading: true}},
			want: "ClusterUpgrading", lines: []string{kind + " upgrading to version v2 (v3 pending)"},
		},
		{
			reason: "a worker upgrades, another is deferred",
			plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded,
				MachineDeployments: Sequence{Upgrading: []string{"a"}, Deferred: []string{"b"}}},
			want: "ClusterUpgrading",
			lines: []string{"MachineDeployment a upgrading to version v2",
				"MachineDeployment b upgrade to version v2 deferred using defer-upgrade or hold-upgrade-sequence annotations"},
		},
		{
			reason: "only deferred workers are left",
			plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded, MachineDeployments: Sequence{Deferred: []string{"b"}},
				MachinePools: Sequence{Deferred: []string{"p", "q"}}},
			want: "MachineDeploymentsUpgradeDeferred",
			lines: []string{"MachineDeployment b upgrade to version v2 deferred using defer-upgrade or hold-upgrade-sequence annotations",
				"MachinePools p, q upgrade to version v2 deferred using topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations"},
		},
		{
			reason: "pinned workers that are upgraded are no part of it", plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded,
				MachineDeployments: Sequence{PinnedUpgrading: []string{"a"}}},
		},
		{
			reason: "a worker upgrades, a pinned one waits for its own version",
			plan: Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded,
				MachineDeployments: Sequence{Upgrading: []string{"a"}, PinnedPending: []string{"b (v1.1)"}}},
			want: "ClusterUpgrading", lines: []string{"MachineDeployment a upgrading to version v2", "MachineDeployment b (v1.1) pending upgrade to pinned version"},
		},
		{
			reason: "only deferred pools are left",
			plan:   Plan{Version: "v2", ControlPlane: "v2", controlPlane: upgraded, MachinePools: Sequence{Deferred: []string{"p"}}},
			want:   "MachinePoolsUpgradeDeferred",
			lines:  []string{"MachinePool p upgrade to version v2 deferred using topology.cluster.x-k8s.io/defer-upgrade or hold-upgrade-sequence annotations"},
		},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			reason, message, ok := tt.plan.Upgrading(kind, tt.blocking)
			want := ""
			if tt.want != "" {
				want = "Cluster is upgrading to " + tt.plan.Version + "\n  * " + strings.Join(tt.lines, "\n  * ")
			}
			if diff := cmp.Diff([]any{tt.want, want, tt.want != ""}, []any{reason, message, ok}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUpgradingOfPinnedWorkersOnly(t *testing.T) {
	plan := Plan{Version: "v2", ControlPlane: "v2", controlPlane: ControlPlane{Exists: true, Version: "v2"},
		MachineDeployments: Sequence{PinnedPending: []string{"a (v1.1)"}}, MachinePools: Sequence{PinnedPending: []string{"p (v1.1)", "q (v1.2)"}}}
	reason, message, ok := plan.Upgrading("KubeadmControlPlane", "")
	want := []any{"ClusterUpgrading", "Workers are upgrading to pinned versions\n" +
		"  * MachineDeployment a (v1.1) pending upgrade to pinned version\n" +
		"  * MachinePools p (v1.1), q (v1.2) pending upgrade to pinned version", true}
	if diff := cmp.Diff(want, []any{reason, message, ok}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
