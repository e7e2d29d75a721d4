package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

func TestControlPlane(t *testing.T) {
	const init, isReady = clusterv1.ControlPlaneInitializedV1Beta1Condition, clusterv1.ControlPlaneReadyV1Beta1Condition
	waiting := func(what string) clusterv1.Condition {
		return condition.False(isReady, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneFallbackV1Beta1Reason, "Waiting for GenericControlPlane c-plane %s", what)
	}
	notReady := waiting("to be ready")
	uninitialized := condition.False(init, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneProviderInitializedV1Beta1Reason,
		"Waiting for control plane provider to indicate the control plane has been initialized")
	sticky := func(c *clusterv1.Cluster) { condition.Set(c, condition.True(init)) }
	wasReady := func(c *clusterv1.Cluster) { condition.Set(c, condition.True(isReady)) }
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		plane   fields
		want    clusterv1.ClusterStatus
		waits   bool
	}{
		"NoReference": {"without the reference, the first control plane Machine decides", build.Cluster(), nil, clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.False(init, clusterv1.ConditionSeverityInfo, clusterv1.MissingNodeRefV1Beta1Reason, "Waiting for the first control plane machine to have its status.nodeRef set")}}}}, true},
		"NotFound": {"it may be created later", build.Cluster(withPlane), nil,
			clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{uninitialized, waiting("to exist")}}}}, true},
		"Gone": {"the conditions of an object that was deleted are kept", build.Cluster(withPlane, sticky, wasReady), nil,
			clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(init), condition.True(isReady)}}}}, true},
		"New": {"the provider has not set the status", build.Cluster(withPlane), fields{}, clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{uninitialized, notReady}}}}, true},
		"Initialized": {"the first API server is up", build.Cluster(withPlane), fields{"status": fields{"initialized": true}},
			clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(init), notReady}}}}, true},
		"Ready": {"all of the control plane is up", build.Cluster(withPlane), fields{"status": fields{"initialized": true, "ready": true}},
			clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{ControlPlaneInitialized: ptr.To(true)}, Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(init), condition.True(isReady)}}}}, false},
		"Sticky": {"initialized is never reverted", build.Cluster(withPlane, sticky), fields{"status": fields{"initialized": false}},
			clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: clusterv1.Conditions{condition.True(init), notReady}}}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.plane != nil {
				objects = append(objects, controlPlaneObject(tc.plane))
			}
			declared := newWorld(t, objects...).declared()
			both := step.All(declared.Step("control-plane"), declared.Step("initialized"))
			r, err := steptest.Run(t.Context(), tc.cluster, &scope{Cluster: tc.cluster}, both)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.cluster.Status); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
