package upgrade

import (
	"testing"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestWaiting has every reason to wait, in the order in which they are reported: each case adds one that comes before the others.
func TestWaiting(t *testing.T) {
	p := Plan{Version: "v2"}
	for _, tt := range []struct {
		reason  string
		add     func()
		want    string
		message string
	}{
		{reason: "nothing waits", add: func() {}},
		{
			reason: "the upgrade of a MachinePool is deferred", add: func() { p.MachinePools.Deferred = []string{"c-p"} },
			want: clusterv1.TopologyReconciledMachinePoolsUpgradeDeferredV1Beta1Reason, message: "MachinePool(s) c-p upgrade to version v2 deferred.",
		},
		{
			reason: "the name of a MachinePool is taken", add: func() { p.MachinePools.NameTaken = []string{"p"} },
			want:    clusterv1.TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason,
			message: "MachinePool(s) for topologies p creation on hold until objects with the same name are deleted.",
		},
		{
			reason: "a MachinePool is created later", add: func() { p.MachinePools.Creating = []string{"p"} },
			want: clusterv1.TopologyReconciledMachinePoolsCreatePendingV1Beta1Reason, message: "MachinePool(s) for topologies p creation with version v2 on hold.",
		},
		{
			reason: "a version of a MachinePool of its own waits", add: func() { p.MachinePools.PinnedPending = []string{"c-p (v1)"} },
			want: clusterv1.TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason, message: "MachinePool(s) c-p (v1) upgrade to pinned version on hold.",
		},
		{
			reason: "a MachinePool is upgraded later", add: func() { p.MachinePools.Pending = []string{"c-p"} },
			want: clusterv1.TopologyReconciledMachinePoolsUpgradePendingV1Beta1Reason, message: "MachinePool(s) c-p rollout and upgrade to version v2 on hold.",
		},
		{
			reason: "the upgrade of a MachineDeployment is deferred", add: func() { p.MachineDeployments.Deferred = []string{"c-md"} },
			want: clusterv1.TopologyReconciledMachineDeploymentsUpgradeDeferredV1Beta1Reason, message: "MachineDeployment(s) c-md upgrade to version v2 deferred.",
		},
		{
			reason: "the name of a MachineDeployment is taken", add: func() { p.MachineDeployments.NameTaken = []string{"md"} },
			want:    clusterv1.TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason,
			message: "MachineDeployment(s) for topologies md creation on hold until objects with the same name are deleted.",
		},
		{
			reason: "a MachineDeployment is created later", add: func() { p.MachineDeployments.Creating = []string{"md"} },
			want:    clusterv1.TopologyReconciledMachineDeploymentsCreatePendingV1Beta1Reason,
			message: "MachineDeployment(s) for topologies md creation with version v2 on hold.",
		},
		{
			reason: "a MachineDeployment is upgraded later", add: func() { p.MachineDeployments.Pending = []string{"c-md"} },
			want:    clusterv1.TopologyReconciledMachineDeploymentsUpgradePendingV1Beta1Reason,
			message: "MachineDeployment(s) c-md rollout and upgrade to version v2 on hold.",
		},
		{
			reason: "the control plane is upgraded later", add: func() { p.ControlPlanePending = true },
			want: clusterv1.TopologyReconciledControlPlaneUpgradePendingV1Beta1Reason, message: "Control plane rollout and upgrade to version v2 on hold.",
		},
	} {
		tt.add()
		reason, message, ok := p.Waiting()
		if reason != tt.want || message != tt.message || ok != (tt.want != "") {
			t.Errorf("%s: got %s %q, want %s %q", tt.reason, reason, message, tt.want, tt.message)
		}
	}
}
