package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/reference"
)

func TestInfrastructure(t *testing.T) {
	isReady := condition.True(clusterv1.InfrastructureReadyV1Beta1Condition)
	waiting := func(what string) clusterv1.Conditions {
		return clusterv1.Conditions{condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForInfrastructureFallbackV1Beta1Reason, "Waiting for GenericMachine m-1 %s", what)}
	}
	wasReady := func(m *clusterv1.Machine) { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	up := func(status fields) fields {
		status["ready"] = true
		return fields{"spec": fields{"providerID": id, "failureDomain": "a"}, "status": status}
	}
	provisioned := clusterv1.MachineInitializationStatus{InfrastructureProvisioned: ptr.To(true)}
	type outcome struct {
		Status     clusterv1.MachineStatus
		ProviderID string
		Domain     string
		Waits      bool
		Failed     bool
	}
	cases := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		infra   fields
		want    outcome
	}{
		"NotFound": {"it may be created later", machine(), nil,
			outcome{Status: clusterv1.MachineStatus{Deprecated: older(waiting("to exist"))}, Waits: true}},
		"GoneAfterReady": {"a machine that was ready and deleted is a terminal failure", machine(wasReady), nil, outcome{Failed: true, Status: clusterv1.MachineStatus{
			Initialization: provisioned, Deprecated: failed("InvalidConfiguration",
				`Machine infrastructure resource infrastructure.cluster.x-k8s.io/v1, Kind=GenericMachine with name "m-1" has been deleted after being ready`, nil),
		}}},
		"NotReady": {"its Ready condition is copied", machine(), fields{"status": fields{"conditions": []any{fields{"type": "Ready", "status": "False", "severity": "Warning", "reason": "Slow", "message": "very"}}}},
			outcome{Waits: true, Status: clusterv1.MachineStatus{Deprecated: older(clusterv1.Conditions{
				condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityWarning, "Slow", "very")})}}},
		"Ready": {"provider ID, failure domain and addresses are copied", machine(), up(fields{"addresses": []any{fields{"type": "InternalIP", "address": "10.0.0.1"}}}),
			outcome{ProviderID: id, Domain: "a", Status: clusterv1.MachineStatus{
				Initialization: provisioned, Deprecated: older(clusterv1.Conditions{isReady}),
				Addresses: clusterv1.MachineAddresses{{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"}}}}},
		"ReadyWithoutID": {"a ready machine without provider ID is an error", machine(), fields{"status": fields{"ready": true}},
			outcome{Failed: true, Status: clusterv1.MachineStatus{Initialization: provisioned, Deprecated: older(clusterv1.Conditions{
				condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityError, reference.ContractViolatedReason,
					"GenericMachine default/m-1 is ready but spec.providerID is empty: its provider must set it")})}}},
		"Failed": {"a terminal failure is copied", machine(), fields{"status": fields{"failureReason": "CreateError"}},
			outcome{Waits: true, Status: clusterv1.MachineStatus{Deprecated: failed("CreateError", "", waiting("to be ready"))}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.infra != nil {
				objects = append(objects, infraMachine(tc.infra))
			}
			w := newWorld(t, objects...)
			m := tc.machine
			r, err := w.step(t, "infrastructure", &scope{machine: m, cluster: build.Cluster()})
			got := outcome{Status: m.Status, ProviderID: m.Spec.ProviderID, Domain: m.Spec.FailureDomain, Waits: r.Ends(), Failed: err != nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (err = %v), -want +got:\n%s", tc.reason, err, diff)
			}
			if len(w.Writes) != 0 {
				t.Errorf("%s: an object with controller and label is not written: %q", tc.reason, w.Writes)
			}
		})
	}
}
