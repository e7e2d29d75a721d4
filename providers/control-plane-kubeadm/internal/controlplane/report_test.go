package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Conditions of Machines are aggregated from the first one on, even before the cluster is initialized. Unknown conditions do
// not take precedence over others, but they are not healthy either.
func TestAggregates(t *testing.T) {
	const info, warning, bad = clusterv1.ConditionSeverityInfo, clusterv1.ConditionSeverityWarning, clusterv1.ConditionSeverityError
	ready := func(c clusterv1.Condition) *clusterv1.Condition { c.Type = clusterv1.ReadyV1Beta1Condition; return &c }
	provisioning := ready(condition.False("", info, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason, "1 of 2 completed"))
	cases := []struct {
		reason  string
		of      []*clusterv1.Condition // Ready of Machines a, b and c; nil if they have none
		started bool
		want    *clusterv1.Condition
	}{
		{reason: "no Machine has a condition", of: []*clusterv1.Condition{nil, nil, nil}},
		{
			reason: "the first Machine is being provisioned", of: []*clusterv1.Condition{provisioning, nil, nil},
			want: new(condition.False(controlplanev1.MachinesReadyV1Beta1Condition, info, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason+" @ Machine/a", "0 of 3 completed")),
		},
		{
			reason: "another Machine is being provisioned", of: []*clusterv1.Condition{ready(condition.True("")), provisioning, nil}, started: true,
			want: new(condition.False(controlplanev1.MachinesReadyV1Beta1Condition, info, clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason+" @ Machine/b", "1 of 3 completed")),
		},
		{
			reason: "the worst decides", started: true,
			of:   []*clusterv1.Condition{provisioning, ready(condition.False("", bad, "Broken", "")), ready(condition.False("", warning, "W", ""))},
			want: new(condition.False(controlplanev1.MachinesReadyV1Beta1Condition, bad, "Broken @ Machine/b", "0 of 3 completed")),
		},
		{
			reason: "all are unknown", started: true, of: []*clusterv1.Condition{ready(condition.Unknown("", "U", "")), nil, nil},
			want: new(condition.Unknown(controlplanev1.MachinesReadyV1Beta1Condition, "U @ Machine/a", "0 of 3 completed")),
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := kcptest.Three(t)
			b.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(tc.started)
			for i, c := range tc.of {
				if c != nil {
					condition.Set(b.Machines[i].Machine, *c)
				}
			}
			for _, c := range machineConditions(b.ControlPlane) {
				condition.Set(b.KCP, c)
			}
			if diff := cmp.Diff(tc.want, condition.Get(b.KCP, controlplanev1.MachinesReadyV1Beta1Condition)); diff != "" {
				t.Errorf("MachinesReady (-want +got):\n%s", diff)
			}
		})
	}
}
