package v1beta1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestEmptyObjectsOnTheWire shows which zero values are written: required fields, and those of status that scripts wait
// for before they are true.
func TestEmptyObjectsOnTheWire(t *testing.T) {
	const machine = `"bootstrap":{},"clusterName":"","infrastructureRef":{}`

	tests := map[string]struct {
		reason string
		object any
		want   string
	}{
		"Cluster": {
			reason: "an endpoint that is not yet known is written as zeroes",
			object: Cluster{},
			want: `{"metadata":{},"spec":{"controlPlaneEndpoint":{"host":"","port":0}},
				"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"ClusterClass": {
			reason: "the references of a class are required",
			object: ClusterClass{},
			want: `{"metadata":{},"spec":{"infrastructure":{"ref":null},"controlPlane":{"metadata":{},"ref":null},
				"workers":{}},"status":{}}`,
		},
		"Machine": {
			reason: "cluster, bootstrap and infrastructure are required",
			object: Machine{},
			want: `{"metadata":{},"spec":{` + machine + `},
				"status":{"bootstrapReady":false,"infrastructureReady":false}}`,
		},
		"MachineSet": {
			reason: "counters are written even when zero",
			object: MachineSet{},
			want: `{"metadata":{},"spec":{"clusterName":"","selector":{},"template":{"metadata":{},"spec":{` + machine + `}}},
				"status":{"replicas":0,"fullyLabeledReplicas":0,"readyReplicas":0,"availableReplicas":0}}`,
		},
		"MachineDeployment": {
			reason: "counters are written even when zero",
			object: MachineDeployment{},
			want: `{"metadata":{},"spec":{"clusterName":"","selector":{},"template":{"metadata":{},"spec":{` + machine + `}}},
				"status":{"replicas":0,"updatedReplicas":0,"readyReplicas":0,"availableReplicas":0,"unavailableReplicas":0}}`,
		},
		"MachinePool": {
			reason: "replicas and the two flags are written even when zero",
			object: MachinePool{},
			want: `{"metadata":{},"spec":{"clusterName":"","template":{"metadata":{},"spec":{` + machine + `}}},
				"status":{"replicas":0,"bootstrapReady":false,"infrastructureReady":false}}`,
		},
		"MachineHealthCheck": {
			reason: "counters are written even when zero",
			object: MachineHealthCheck{},
			want: `{"metadata":{},"spec":{"clusterName":"","selector":{}},
				"status":{"expectedMachines":0,"currentHealthy":0,"remediationsAllowed":0}}`,
		},
		"Condition": {
			reason: "what is required of a condition is always written",
			object: Condition{Type: ReadyCondition, Status: "True"},
			want:   `{"type":"Ready","status":"True","lastTransitionTime":null}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, tc.want), parsed(t, string(data))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSchemeKnowsEveryKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		ClusterKind, ClusterClassKind, MachineKind, MachineSetKind, MachineDeploymentKind, MachinePoolKind,
		MachineHealthCheckKind,
	} {
		object, err := s.New(GroupVersion.WithKind(kind))
		if err != nil {
			t.Errorf("kind %s: %v", kind, err)
			continue
		}
		if _, err := s.New(GroupVersion.WithKind(kind + "List")); err != nil {
			t.Errorf("list of %s: %v", kind, err)
		}
		conditioned, ok := object.(interface {
			metav1.Object
			GetConditions() Conditions
			SetConditions(conditions Conditions)
			GetV1Beta2Conditions() []metav1.Condition
			SetV1Beta2Conditions(conditions []metav1.Condition)
		})
		if !ok {
			t.Errorf("kind %s has no conditions", kind)
			continue
		}
		want := Conditions{{Type: ReadyCondition, Status: "True"}}
		conditioned.SetConditions(want)
		if diff := cmp.Diff(want, conditioned.GetConditions()); diff != "" {
			t.Errorf("kind %s does not keep its conditions (-want +got):\n%s", kind, diff)
		}
		if got := conditioned.GetV1Beta2Conditions(); got != nil {
			t.Errorf("kind %s starts with conditions of v1beta2: %v", kind, got)
		}
		wantNew := []metav1.Condition{{Type: "Available", Status: metav1.ConditionTrue}}
		conditioned.SetV1Beta2Conditions(wantNew)
		if diff := cmp.Diff(wantNew, conditioned.GetV1Beta2Conditions()); diff != "" {
			t.Errorf("kind %s does not keep its conditions of v1beta2 (-want +got):\n%s", kind, diff)
		}
	}
}

func parsed(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
