package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestInitializedWithoutControlPlaneObject(t *testing.T) {
	missing := condition.False(clusterv1.ControlPlaneInitializedV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.MissingNodeRefV1Beta1Reason,
		"Waiting for the first control plane machine to have its status.nodeRef set")
	notReported := condition.False(clusterv1.ControlPlaneInitializedV1Beta1Condition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneProviderInitializedV1Beta1Reason,
		"Waiting for control plane provider to indicate the control plane has been initialized")
	yes := condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition)
	worker := build.Machine("worker")
	withNode(worker)
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		machine *clusterv1.Machine
		want    clusterv1.Conditions
	}{
		"Managed": {"the control plane object decides", build.Cluster(withPlane), controlPlaneMachine("m", withNode), clusterv1.Conditions{notReported}},
		"NoNode":  {"it has no Node yet", build.Cluster(), controlPlaneMachine("m"), clusterv1.Conditions{missing}},
		"Worker":  {"workers do not count", build.Cluster(), worker, clusterv1.Conditions{missing}},
		"Node":    {"the first Node is enough", build.Cluster(), controlPlaneMachine("m", withNode), clusterv1.Conditions{yes}},
		"Sticky":  {"the condition is never reverted", build.Cluster(func(c *clusterv1.Cluster) { condition.Set(c, yes) }), controlPlaneMachine("m"), clusterv1.Conditions{yes}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := newWorld(t, tc.machine).step(t, "initialized", tc.cluster); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.cluster.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
