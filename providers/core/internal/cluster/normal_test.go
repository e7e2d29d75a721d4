package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func TestInfrastructure(t *testing.T) {
	isReady := condition.True(clusterv1.InfrastructureReadyCondition)
	waiting := func(what string) clusterv1.Conditions {
		return clusterv1.Conditions{condition.False(clusterv1.InfrastructureReadyCondition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForInfrastructureFallbackReason, "Waiting for GenericCluster c-infra %s", what)}
	}
	up := fields{
		"spec":   fields{"controlPlaneEndpoint": fields{"host": "theirs", "port": int64(6443)}},
		"status": fields{"ready": true, "failureDomains": fields{"a": fields{"controlPlane": true}}},
	}
	domains := clusterv1.FailureDomains{"a": {ControlPlane: true}}
	type outcome struct {
		Status   clusterv1.ClusterStatus
		Endpoint clusterv1.APIEndpoint
		Waits    bool
		Failed   bool
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		infra   fields
		want    outcome
	}{
		"NoReference": {"the reference is optional", build.Cluster(), nil, outcome{}},
		"NotFound":    {"it may be created later", build.Cluster(withInfra), nil, outcome{Waits: true, Status: clusterv1.ClusterStatus{Conditions: waiting("to exist")}}},
		"NotReady":    {"the provider has not set the status", build.Cluster(withInfra), fields{}, outcome{Waits: true, Status: clusterv1.ClusterStatus{Conditions: waiting("to be ready")}}},
		"Ready": {"endpoint and failure domains are copied", build.Cluster(withInfra), up, outcome{
			Status:   clusterv1.ClusterStatus{InfrastructureReady: true, FailureDomains: domains, Conditions: clusterv1.Conditions{isReady}},
			Endpoint: clusterv1.APIEndpoint{Host: "theirs", Port: 6443}}},
		"OwnEndpoint": {"an endpoint of the Cluster is kept", build.Cluster(withInfra, withEndpoint), up, outcome{
			Status:   clusterv1.ClusterStatus{InfrastructureReady: true, FailureDomains: domains, Conditions: clusterv1.Conditions{isReady}},
			Endpoint: clusterv1.APIEndpoint{Host: "own", Port: 1}}},
		"DomainsGone": {"removed failure domains are removed from the Cluster",
			build.Cluster(withInfra, withEndpoint, func(c *clusterv1.Cluster) { c.Status.FailureDomains = domains }), fields{"status": fields{"ready": true}},
			outcome{Status: clusterv1.ClusterStatus{InfrastructureReady: true, Conditions: clusterv1.Conditions{isReady}}, Endpoint: clusterv1.APIEndpoint{Host: "own", Port: 1}}},
		"NoEndpoint": {"a ready object without endpoint is an error", build.Cluster(withInfra), fields{"status": fields{"ready": true}}, outcome{Failed: true,
			Status: clusterv1.ClusterStatus{InfrastructureReady: true, Conditions: clusterv1.Conditions{isReady}}}},
		"Failed": {"a terminal failure is copied", build.Cluster(withInfra), fields{"status": fields{"failureReason": "CreateError", "failureMessage": "no luck"}}, outcome{Waits: true,
			Status: clusterv1.ClusterStatus{
				FailureReason:  ptr.To(clusterv1.ClusterStatusError("CreateError")),
				FailureMessage: ptr.To(`Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1, Kind=GenericCluster with name "c-infra": no luck`),
				Conditions:     waiting("to be ready")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.infra != nil {
				objects = append(objects, infraCluster(tc.infra))
			}
			w := newWorld(t, objects...)
			r, err := w.step(t, "infrastructure", tc.cluster)
			got := outcome{Status: tc.cluster.Status, Endpoint: tc.cluster.Spec.ControlPlaneEndpoint, Waits: r.Ends(), Failed: err != nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (err = %v), -want +got:\n%s", tc.reason, err, diff)
			}
			if len(w.Writes) != 0 {
				t.Errorf("%s: an object with controller and label is not written: %q", tc.reason, w.Writes)
			}
		})
	}
}

func TestControlPlane(t *testing.T) {
	const init, isReady = clusterv1.ControlPlaneInitializedCondition, clusterv1.ControlPlaneReadyCondition
	waiting := func(what string) clusterv1.Condition {
		return condition.False(isReady, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneFallbackReason, "Waiting for GenericControlPlane c-plane %s", what)
	}
	notReady := waiting("to be ready")
	uninitialized := condition.False(init, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneProviderInitializedReason,
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
		"NoReference": {"without the reference, the first control plane Machine decides", build.Cluster(), nil, clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{condition.False(init, clusterv1.ConditionSeverityInfo, clusterv1.MissingNodeRefReason, "Waiting for the first control plane machine to have its status.nodeRef set")}}, true},
		"NotFound": {"it may be created later", build.Cluster(withPlane), nil,
			clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{uninitialized, waiting("to exist")}}, true},
		"Gone": {"the conditions of an object that was deleted are kept", build.Cluster(withPlane, sticky, wasReady), nil,
			clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{condition.True(init), condition.True(isReady)}}, true},
		"New": {"the provider has not set the status", build.Cluster(withPlane), fields{}, clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{uninitialized, notReady}}, true},
		"Initialized": {"the first API server is up", build.Cluster(withPlane), fields{"status": fields{"initialized": true}},
			clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{condition.True(init), notReady}}, true},
		"Ready": {"all of the control plane is up", build.Cluster(withPlane), fields{"status": fields{"initialized": true, "ready": true}},
			clusterv1.ClusterStatus{ControlPlaneReady: true, Conditions: clusterv1.Conditions{condition.True(init), condition.True(isReady)}}, false},
		"Sticky": {"initialized is never reverted", build.Cluster(withPlane, sticky), fields{"status": fields{"initialized": false}},
			clusterv1.ClusterStatus{Conditions: clusterv1.Conditions{condition.True(init), notReady}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.plane != nil {
				objects = append(objects, controlPlaneObject(tc.plane))
			}
			declared := newWorld(t, objects...).declared()
			both := step.All(declared.Step("control-plane"), declared.Step("initialized"))
			r, err := step.Try(t.Context(), tc.cluster, &scope{Cluster: tc.cluster}, both)
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.want, tc.cluster.Status); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInitializedWithoutControlPlaneObject(t *testing.T) {
	missing := condition.False(clusterv1.ControlPlaneInitializedCondition, clusterv1.ConditionSeverityInfo, clusterv1.MissingNodeRefReason,
		"Waiting for the first control plane machine to have its status.nodeRef set")
	notReported := condition.False(clusterv1.ControlPlaneInitializedCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForControlPlaneProviderInitializedReason,
		"Waiting for control plane provider to indicate the control plane has been initialized")
	yes := condition.True(clusterv1.ControlPlaneInitializedCondition)
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
			if diff := cmp.Diff(tc.want, tc.cluster.Status.Conditions); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
