package contract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	// YAML gives float64 for every number; objects from an API server have int64 for whole ones.
	content, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return u
}

const head = "apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Thing\nmetadata: {name: one, namespace: ns}\n"

// all returns the results of all accessors of all roles, so that a table can compare whole values.
func all(o Object) (map[string]any, error) {
	got := map[string]any{}
	var firstErr error
	put := func(name string, value any, err error) {
		if err != nil && firstErr == nil {
			firstErr = err
		}
		got[name] = value
	}
	cluster, machine, pool, bootstrap := InfrastructureClusterOf(o), InfrastructureMachineOf(o), InfrastructureMachinePoolOf(o), BootstrapOf(o)
	ready, err := cluster.Provisioned()
	put("ready", ready, err)
	if same, err := machine.Provisioned(); err != nil || same != ready {
		put("ready machine", same, err)
	}
	if same, err := pool.Provisioned(); err != nil || same != ready {
		put("ready pool", same, err)
	}
	created, err := bootstrap.DataSecretCreated()
	put("created", created, err)
	reason, message, err := o.Failure()
	put("failureReason", reason, err)
	put("failureMessage", message, nil)
	conditions, err := o.Conditions()
	put("conditions", conditions, err)
	endpoint, present, err := cluster.ControlPlaneEndpoint()
	put("endpoint", endpoint, err)
	put("endpointPresent", present, nil)
	domains, err := cluster.FailureDomains()
	put("failureDomains", domains, err)
	id, err := machine.ProviderID()
	put("providerID", id, err)
	domain, err := machine.FailureDomain()
	put("failureDomain", domain, err)
	addresses, err := machine.Addresses()
	put("addresses", addresses, err)
	interruptible, err := machine.Interruptible()
	put("interruptible", interruptible, err)
	secret, err := bootstrap.DataSecretName()
	put("dataSecretName", secret, err)
	ids, err := pool.ProviderIDs()
	put("providerIDs", ids, err)
	kind, err := pool.MachineKind()
	put("machineKind", kind, err)
	machines, err := pool.Replicas()
	put("machines", machines, err)
	replicas, err := ControlPlaneOf(o).statusReplicas()
	put("replicas", replicas, err)
	return got, firstErr
}

func TestReadProviders(t *testing.T) {
	absent := map[string]any{
		"ready": false, "created": false, "failureReason": "", "failureMessage": "", "conditions": clusterv1.Conditions(nil),
		"endpoint": clusterv1.APIEndpoint{}, "endpointPresent": false, "failureDomains": []clusterv1.FailureDomain(nil),
		"providerID": "", "failureDomain": (*string)(nil), "addresses": clusterv1.MachineAddresses(nil), "interruptible": false,
		"dataSecretName": "", "replicas": counters{}, "providerIDs": []string(nil), "machineKind": "", "machines": (*int32)(nil),
	}
	zone, three := "a", int32(3)
	full := map[string]any{
		"ready": true, "created": true, "failureReason": "Broken", "failureMessage": "on fire",
		"conditions": clusterv1.Conditions{{
			Type: "Ready", Status: "False", Severity: "Warning", Reason: "Wait", Message: "soon",
			LastTransitionTime: metav1.NewTime(time.Date(2024, 4, 1, 10, 0, 0, 0, time.UTC).Local()),
		}},
		"endpoint": clusterv1.APIEndpoint{Host: "lb", Port: 6443}, "endpointPresent": true,
		"failureDomains": []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true), Attributes: map[string]string{"k": "v"}}},
		"providerID":     "x://1", "failureDomain": &zone,
		"addresses":     clusterv1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}},
		"interruptible": true, "dataSecretName": "data", "replicas": counters{Total: &three},
		"providerIDs": []string{"x://1", "x://2"}, "machineKind": "Thing", "machines": &three,
	}
	tests := []struct {
		reason string
		object string
		want   map[string]any
	}{
		{"an object that its provider has not reconciled yet", head, absent},
		{"null is absent", head + "spec: {failureDomain: null, controlPlaneEndpoint: null}\nstatus: null\n", absent},
		{"all fields are set", head + `
spec: {controlPlaneEndpoint: {host: lb, port: 6443}, providerID: "x://1", failureDomain: a, providerIDList: ["x://1", "x://2"]}
status:
  ready: true
  failureReason: Broken
  failureMessage: on fire
  interruptible: true
  replicas: 3
  dataSecretName: data
  infrastructureMachineKind: Thing
  addresses: [{type: InternalIP, address: 10.0.0.1}]
  failureDomains: {a: {controlPlane: true, attributes: {k: v}}}
  conditions:
  - {type: Ready, status: "False", severity: Warning, reason: Wait, message: soon, lastTransitionTime: "2024-04-01T10:00:00Z"}
`, full},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got, err := all(Object{Unstructured: parse(t, tc.object)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnEndpointThatIsPresentButZeroIsPresent(t *testing.T) {
	for _, spec := range []string{`{controlPlaneEndpoint: {host: "", port: 0}}`, `{controlPlaneEndpoint: {}}`} {
		endpoint, present, err := InfrastructureClusterOf(Object{Unstructured: parse(t, head+"spec: "+spec)}).ControlPlaneEndpoint()
		if endpoint != (clusterv1.APIEndpoint{}) || !present || err != nil {
			t.Errorf("spec %s: got %v, present %t, error %v", spec, endpoint, present, err)
		}
	}
}

func TestFieldsOfAnotherTypeAreErrors(t *testing.T) {
	tests := []struct {
		reason string
		fields string
		want   string
	}{
		{"a string where a boolean is agreed", `status: {ready: "true"}`,
			"Thing.infrastructure.cluster.x-k8s.io ns/one: field status.ready is a string, the contract asks for a boolean"},
		{"a field below a value that is not an object", `status: nope`, "field status is a string, the contract asks for an object"},
		{"a fraction where a count is agreed", `status: {replicas: 1.5}`, "field status.replicas is a number, the contract asks for a whole number"},
		{"a count that does not fit", `status: {replicas: 4294967296}`, "field status.replicas is 4294967296, which is out of the range"},
		{"a list of the wrong strings", `spec: {providerIDList: [1]}`, "field spec.providerIDList is not what the contract asks for"},
		{"a list of the wrong thing", `status: {addresses: [1]}`, "field status.addresses is not what the contract asks for"},
		{"a structure of the wrong type", `spec: {controlPlaneEndpoint: {port: lots}}`, "field spec.controlPlaneEndpoint.port is a string, the contract asks for a whole number"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := all(Object{Unstructured: parse(t, head+tc.fields)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
