package inplace

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// answer is an extension with one answer.
type answer struct {
	response runtimehooksv1.CanUpdateMachineResponse
	request  runtimehooksv1.CanUpdateMachineRequest
}

// Handlers implements Caller.
func (a *answer) Handlers(context.Context, runtimecatalog.Hook, client.Object) ([]string, error) {
	return []string{"can.x"}, nil
}

// CallOnly implements Caller.
func (a *answer) CallOnly(_ context.Context, _ runtimecatalog.Hook, _ client.Object, request runtimehooksv1.RequestObject, response runtimehooksv1.ResponseObject) error {
	a.request = *request.(*runtimehooksv1.CanUpdateMachineRequest)
	*response.(*runtimehooksv1.CanUpdateMachineResponse) = a.response
	return nil
}

// objects returns a Machine with its objects, by the specs of all three in YAML.
func objects(t *testing.T, machine, infrastructure, bootstrap string) Objects {
	t.Helper()
	o := Objects{Machine: &clusterv1.Machine{}}
	o.Machine.Name, o.Machine.Annotations = "m", map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "large"}
	provided := func(kind, spec string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "x/v1", "kind": kind, "status": map[string]any{"secret": "s"}}}
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
			t.Fatal(err)
		}
		u.Object["spec"] = fields
		return u
	}
	if err := yaml.Unmarshal([]byte(machine), &o.Machine.Spec); err != nil {
		t.Fatal(err)
	}
	o.Infrastructure = provided("TestMachine", infrastructure)
	if bootstrap != "" {
		o.Bootstrap = provided("TestConfig", bootstrap)
	}
	return o
}

func merge(patch string) runtimehooksv1.Patch {
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONMergePatchType, Patch: []byte(patch)}
}

func operations(patch string) runtimehooksv1.Patch {
	return runtimehooksv1.Patch{PatchType: runtimehooksv1.JSONPatchType, Patch: []byte(patch)}
}

func TestCanUpdate(t *testing.T) {
	type specs struct{ machine, infrastructure, bootstrap string }
	is := specs{"{clusterName: c, version: v1.1.0}", "{size: s, disks: [1, 2]}", "{files: [a]}"}
	for _, tc := range []struct {
		reason          string
		current, wanted specs
		response        runtimehooksv1.CanUpdateMachineResponse
		obstacles       []string
		err             string
	}{
		{reason: "nothing differs", current: is, wanted: is},
		{
			reason: "without patches, the extension can change nothing", current: is, wanted: specs{"{clusterName: c, version: v1.2.0}", "{size: l, disks: [1]}", "{files: [b]}"},
			obstacles: []string{"Machine spec.version", "TestMachine spec.disks", "TestMachine spec.size", "TestConfig spec.files"},
		},
		{
			reason: "patches of both kinds lead to what is desired", current: is, wanted: specs{"{clusterName: c, version: v1.2.0}", "{size: l, disks: [1, 2, 3]}", "{files: [b]}"},
			response: runtimehooksv1.CanUpdateMachineResponse{
				MachinePatch:               merge(`{"spec":{"version":"v1.2.0"}}`),
				InfrastructureMachinePatch: operations(`[{"op":"replace","path":"/spec/size","value":"l"},{"op":"add","path":"/spec/disks/-","value":3}]`),
				BootstrapConfigPatch:       merge(`{"spec":{"files":["b"]}}`),
			},
		},
		{
			reason: "all of the change must be possible", current: is, wanted: specs{"{clusterName: c, version: v1.2.0}", "{size: l, disks: [1, 2]}", "{files: [a]}"},
			response:  runtimehooksv1.CanUpdateMachineResponse{MachinePatch: merge(`{"spec":{"version":"v1.2.0"}}`)},
			obstacles: []string{"TestMachine spec.size"},
		},
		{
			reason: "an extension that changes something else is an obstacle", current: is, wanted: is,
			response:  runtimehooksv1.CanUpdateMachineResponse{InfrastructureMachinePatch: merge(`{"spec":{"size":null}}`)},
			obstacles: []string{"TestMachine spec.size"},
		},
		{
			reason: "only specs count", current: is, wanted: is,
			response: runtimehooksv1.CanUpdateMachineResponse{InfrastructureMachinePatch: merge(`{"metadata":{"labels":{"a":"b"}},"status":null}`)},
		},
		{
			reason: "some fields of Machines change without an extension", current: is,
			wanted: specs{"{clusterName: c, version: v1.1.0, providerID: x, minReadySeconds: 5, readinessGates: [{conditionType: T}], deletion: {nodeDrainTimeoutSeconds: 1}, taints: [{key: k, effect: NoSchedule, propagation: Always}], bootstrap: {dataSecretName: d}, infrastructureRef: {name: n}}", is.infrastructure, is.bootstrap},
		},
		{
			reason: "fields that disappear count", current: is, wanted: specs{is.machine, "{size: s}", is.bootstrap},
			obstacles: []string{"TestMachine spec.disks"},
		},
		{reason: "a Machine may have no bootstrap config", current: specs{is.machine, is.infrastructure, ""}, wanted: specs{is.machine, is.infrastructure, ""}},
		{
			reason: "a patch that cannot be applied is an error", current: is, wanted: is,
			response: runtimehooksv1.CanUpdateMachineResponse{MachinePatch: operations(`[{"op":"remove","path":"/spec/nothing"}]`)},
			err:      "invalid patch of Machine in the response to hook CanUpdateMachine: ",
		},
		{
			reason: "a patch needs a type", current: is, wanted: is, response: runtimehooksv1.CanUpdateMachineResponse{MachinePatch: runtimehooksv1.Patch{Patch: []byte("{}")}},
			err: `invalid patch of Machine in the response to hook CanUpdateMachine: patchType is "", but must be JSONPatch or JSONMergePatch`,
		},
		{
			reason: "a patch that makes the spec a list is an error", current: is, wanted: is, response: runtimehooksv1.CanUpdateMachineResponse{MachinePatch: merge(`{"spec":[1]}`)},
			err: "invalid patch of Machine in the response to hook CanUpdateMachine: after the patch: ",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			a := &answer{response: tc.response}
			from := objects(t, tc.current.machine, tc.current.infrastructure, tc.current.bootstrap)
			got, err := CanUpdate(t.Context(), a, from, objects(t, tc.wanted.machine, tc.wanted.infrastructure, tc.wanted.bootstrap))
			if (err != nil) != (tc.err != "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Fatalf("error %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.obstacles, got); diff != "" && err == nil {
				t.Errorf("obstacles (-want +got):\n%s", diff)
			}
			if raw := string(a.request.Current.InfrastructureMachine.Raw); strings.Contains(raw, "status") || len(a.request.Current.Machine.Annotations) > 0 {
				t.Errorf("the extension gets %s, annotations %v: no status, and nothing that only API servers and kubectl read", raw, a.request.Current.Machine.Annotations)
			}
			if from.Machine.Annotations == nil || from.Infrastructure.Object["status"] == nil {
				t.Error("the objects themselves were changed")
			}
		})
	}
}

func TestMarks(t *testing.T) {
	m := &clusterv1.Machine{}
	Mark(m)
	if !IsMarked(m) || IsPending(m) || !IsUpdating(m) {
		t.Errorf("annotations %v: marked", m.Annotations)
	}
	MarkPending(m)
	if !IsPending(m) {
		t.Errorf("annotations %v: pending", m.Annotations)
	}
	if End(m); IsUpdating(m) || len(m.Annotations) > 0 {
		t.Errorf("annotations %v, want none", m.Annotations)
	}
}
