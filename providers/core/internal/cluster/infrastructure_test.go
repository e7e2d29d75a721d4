package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
)

func TestInfrastructure(t *testing.T) {
	isReady := condition.True(clusterv1.InfrastructureReadyV1Beta1Condition)
	provisioned := clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}
	older := func(conditions ...clusterv1.Condition) *clusterv1.ClusterDeprecatedStatus {
		return &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{Conditions: conditions}}
	}
	waiting := func(what string) clusterv1.Condition {
		return condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason, "Waiting for GenericCluster c-infra %s", what)
	}
	up := fields{
		"spec":   fields{"controlPlaneEndpoint": fields{"host": "theirs", "port": int64(6443)}},
		"status": fields{"ready": true, "failureDomains": fields{"a": fields{"controlPlane": true}}},
	}
	domains := []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true)}}
	type outcome struct {
		Status   clusterv1.ClusterStatus
		Endpoint clusterv1.APIEndpoint
		Waits    bool
		Failed   bool
	}
	violated := func(message string) outcome {
		return outcome{Failed: true, Status: clusterv1.ClusterStatus{Initialization: provisioned, Deprecated: older(
			condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityError, reference.ContractViolatedReason, "%s", message))}}
	}
	cases := map[string]struct {
		reason  string
		cluster *clusterv1.Cluster
		infra   fields
		want    outcome
	}{
		"NoReference": {"nothing has to be provisioned", build.Cluster(), nil,
			outcome{Status: clusterv1.ClusterStatus{Initialization: provisioned, Deprecated: older(isReady)}}},
		"NotFound": {"it may be created later", build.Cluster(withInfra), nil, outcome{Waits: true, Status: clusterv1.ClusterStatus{Deprecated: older(waiting("to exist"))}}},
		"NotReady": {"the provider has not set the status", build.Cluster(withInfra), fields{}, outcome{Waits: true, Status: clusterv1.ClusterStatus{Deprecated: older(waiting("to be ready"))}}},
		"Ready": {"endpoint and failure domains are copied", build.Cluster(withInfra), up, outcome{
			Status:   clusterv1.ClusterStatus{Initialization: provisioned, FailureDomains: domains, Deprecated: older(isReady)},
			Endpoint: clusterv1.APIEndpoint{Host: "theirs", Port: 6443}}},
		"OwnEndpoint": {"an endpoint of the Cluster is kept", build.Cluster(withInfra, withEndpoint), up, outcome{
			Status:   clusterv1.ClusterStatus{Initialization: provisioned, FailureDomains: domains, Deprecated: older(isReady)},
			Endpoint: clusterv1.APIEndpoint{Host: "own", Port: 1}}},
		"DomainsGone": {"removed failure domains are removed from the Cluster",
			build.Cluster(withInfra, withEndpoint, func(c *clusterv1.Cluster) { c.Status.FailureDomains = domains }), fields{"status": fields{"ready": true}},
			outcome{Status: clusterv1.ClusterStatus{Initialization: provisioned, Deprecated: older(isReady)}, Endpoint: clusterv1.APIEndpoint{Host: "own", Port: 1}}},
		"NoEndpoint": {"a ready object without endpoint is an error, and the Cluster is not ready", build.Cluster(withInfra), fields{"status": fields{"ready": true}},
			violated("GenericCluster default/c-infra is ready, but spec.controlPlaneEndpoint is set neither there nor on the Cluster: " +
				"its provider must set host and port there, or you on the Cluster")},
		"ZeroEndpoint": {"an empty endpoint is none; failure domains are copied, because control planes need them", build.Cluster(withInfra),
			fields{"status": fields{"ready": true, "failureDomains": fields{"a": fields{"controlPlane": true}}},
				"spec": fields{"controlPlaneEndpoint": fields{"host": "", "port": int64(0)}}},
			func() outcome {
				o := violated("GenericCluster default/c-infra is ready, but spec.controlPlaneEndpoint is set neither there nor on the Cluster: " +
					"its provider must set host and port there, or you on the Cluster")
				o.Status.FailureDomains = domains
				return o
			}()},
		"HalfEndpoint": {"an endpoint without port is none", build.Cluster(withInfra),
			fields{"status": fields{"ready": true}, "spec": fields{"controlPlaneEndpoint": fields{"host": "theirs"}}},
			violated("GenericCluster default/c-infra is ready, but spec.controlPlaneEndpoint has host \"theirs\" and port 0: " +
				"its provider must set both, the port from 1 to 65535")},
		"NoPort": {"a port that the API server would reject", build.Cluster(withInfra),
			fields{"status": fields{"ready": true}, "spec": fields{"controlPlaneEndpoint": fields{"host": "theirs", "port": int64(70000)}}},
			violated("GenericCluster default/c-infra is ready, but spec.controlPlaneEndpoint has host \"theirs\" and port 70000: " +
				"its provider must set both, the port from 1 to 65535")},
		"PortType": {"a port of another type", build.Cluster(withInfra),
			fields{"status": fields{"ready": true}, "spec": fields{"controlPlaneEndpoint": fields{"host": "theirs", "port": "6443"}}},
			violated("GenericCluster.infrastructure.cluster.x-k8s.io default/c-infra: " +
				"field spec.controlPlaneEndpoint.port is a string, the contract asks for a whole number")},
		"NoEndpointHosted": {"the control plane object may have the endpoint, and may be created later", build.Cluster(withInfra, withPlane),
			fields{"status": fields{"ready": true}},
			outcome{Status: clusterv1.ClusterStatus{Initialization: provisioned, Deprecated: older(isReady)}}},
		"Failed": {"a terminal failure is copied", build.Cluster(withInfra), fields{"status": fields{"failureReason": "CreateError", "failureMessage": "no luck"}}, outcome{Waits: true,
			Status: clusterv1.ClusterStatus{Deprecated: &clusterv1.ClusterDeprecatedStatus{V1Beta1: &clusterv1.ClusterV1Beta1DeprecatedStatus{
				FailureReason:  ptr.To("CreateError"),
				FailureMessage: ptr.To(`Failure detected from referenced resource infrastructure.cluster.x-k8s.io/v1, Kind=GenericCluster with name "c-infra": no luck`),
				Conditions:     clusterv1.Conditions{waiting("to be ready")},
			}}}}},
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

// TestEndpointOfControlPlane checks who sets the endpoint: the user, the infrastructure, or a control plane that hosts its API server.
func TestEndpointOfControlPlane(t *testing.T) {
	endpointOf := func(host string) fields {
		return fields{"controlPlaneEndpoint": fields{"host": host, "port": int64(6443)}}
	}
	ready := func(spec fields) fields { return fields{"spec": spec, "status": fields{"ready": true}} }
	cases := map[string]struct {
		reason       string
		cluster      *clusterv1.Cluster
		infra, plane fields
		want         string
		err          bool
	}{
		"NoInfrastructure": {"there is no other source", build.Cluster(withPlane), nil, fields{"spec": endpointOf("plane")}, "plane:6443", false},
		"Silent":           {"the infrastructure does not set it", build.Cluster(withInfra, withPlane), ready(nil), fields{"spec": endpointOf("plane")}, "plane:6443", false},
		"Both":             {"the infrastructure takes precedence", build.Cluster(withInfra, withPlane), ready(endpointOf("infra")), fields{"spec": endpointOf("plane")}, "infra:6443", false},
		"User":             {"the Cluster's own is kept", build.Cluster(withPlane, withEndpoint), nil, fields{"spec": endpointOf("plane")}, "own:1", false},
		"Later":            {"a hosted control plane may set it later", build.Cluster(withInfra, withPlane), ready(nil), fields{}, ":0", false},
		"Half":             {"an endpoint without a port is not usable yet", build.Cluster(withPlane), nil, fields{"spec": fields{"controlPlaneEndpoint": fields{"host": "plane", "port": int64(0)}}}, ":0", false},
		"Invalid":          {"a field of a wrong type is reported", build.Cluster(withPlane), nil, fields{"spec": fields{"controlPlaneEndpoint": "plane:6443"}}, ":0", true},
		"Machines": {"Machines need the endpoint, so their control plane cannot set it", build.Cluster(withInfra, withPlane), ready(nil),
			fields{"spec": fields{"machineTemplate": fields{}}}, ":0", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{controlPlaneObject(tc.plane)}
			if tc.infra != nil {
				objects = append(objects, infraCluster(tc.infra))
			}
			declared := newWorld(t, objects...).declared()
			both := step.All(declared.Step("infrastructure"), declared.Step("control-plane"))
			_, err := steptest.Run(t.Context(), tc.cluster, &scope{Cluster: tc.cluster}, both)
			if got := tc.cluster.Spec.ControlPlaneEndpoint.String(); got != tc.want || (err != nil) != tc.err {
				t.Errorf("%s: endpoint %s, want %s; err = %v", tc.reason, got, tc.want, err)
			}
		})
	}
}
