package hook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/kubelet"
)

func mustName(t *testing.T, catalog *runtimecatalog.Catalog, hook runtimecatalog.Hook) runtimecatalog.GroupVersionHook {
	t.Helper()
	name, err := catalog.GroupVersionHook(hook)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// raw returns an object of YAML.
func raw(t *testing.T, text string) runtime.RawExtension {
	t.Helper()
	out, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: out}
}

// patched returns a response's patch as YAML; empty if there is none.
func patched(t *testing.T, p hooksv1.Patch) string {
	t.Helper()
	if !p.IsDefined() {
		return ""
	}
	if p.PatchType != hooksv1.JSONMergePatchType || !json.Valid(p.Patch) {
		t.Errorf("patch %s of type %s", p.Patch, p.PatchType)
	}
	return string(p.Patch)
}

func TestCanUpdate(t *testing.T) {
	const spec = `{joinConfiguration: {nodeRegistration: {kubeletExtraArgs: [{name: max-pods, value: "%"}]}}}`
	const patch = `{"spec":{"joinConfiguration":{"nodeRegistration":{"kubeletExtraArgs":[{"name":"max-pods","value":"50"}]}}}}`
	at := func(value string) string { return strings.Replace(spec, "%", value, 1) }
	for _, tc := range []struct{ reason, answer, want string }{
		{reason: "by default, nothing can change in place"},
		{reason: "flags that are listed can", answer: "kubeletFlags: [max-pods]", want: patch},
		{reason: "others cannot", answer: "kubeletFlags: [v]"},
		{reason: "a failure promises nothing", answer: "{status: Failure, kubeletFlags: [max-pods]}"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := handlers(texts{"ns/c-test-extension CanUpdateMachine": tc.answer, "ns/c-test-extension CanUpdateMachineSet": tc.answer})
			machine := &hooksv1.CanUpdateMachineRequest{}
			machine.Current.Machine.Namespace, machine.Current.Machine.Spec.ClusterName = "ns", "c"
			machine.Current.BootstrapConfig, machine.Desired.BootstrapConfig = raw(t, "spec: "+at("100")), raw(t, "spec: "+at("50"))
			one := &hooksv1.CanUpdateMachineResponse{}
			h.canUpdateMachine(t.Context(), machine, one)
			if diff := cmp.Diff(tc.want, patched(t, one.BootstrapConfigPatch)); diff != "" {
				t.Errorf("Machine (-want +got):\n%s", diff)
			}
			set := &hooksv1.CanUpdateMachineSetRequest{}
			set.Current.MachineSet.Namespace, set.Current.MachineSet.Spec.ClusterName = "ns", "c"
			set.Current.BootstrapConfigTemplate = raw(t, "spec: {template: {spec: "+at("100")+"}}")
			set.Desired.BootstrapConfigTemplate = raw(t, "spec: {template: {spec: "+at("50")+"}}")
			all := &hooksv1.CanUpdateMachineSetResponse{}
			h.canUpdateMachineSet(t.Context(), set, all)
			want := tc.want
			if want != "" {
				want = `{"spec":{"template":` + want + `}}`
			}
			if diff := cmp.Diff(want, patched(t, all.BootstrapConfigTemplatePatch)); diff != "" {
				t.Errorf("MachineSet (-want +got):\n%s", diff)
			}
			if one.Status != all.Status || (one.Status == hooksv1.ResponseStatusFailure) != strings.Contains(tc.answer, "Failure") {
				t.Errorf("status %s and %s", one.Status, all.Status)
			}
		})
	}
}

func TestUpdateMachine(t *testing.T) {
	unreachable := errors.New("the workload cluster is unreachable")
	for _, tc := range []struct {
		reason, answer, config string
		want                   hooksv1.UpdateMachineResponse
	}{
		{reason: "by default, updates are complete", config: "spec: {}", want: update("Success", "", 0)},
		{reason: "updates are simulated", answer: "{message: swapping disks, retryAfterSeconds: 5}", config: "spec: {}", want: update("Success", "swapping disks", 5)},
		{
			reason: "flags are changed through the workload cluster", answer: "kubeletFlags: [max-pods]",
			config: "spec: {}", want: update("Failure", unreachable.Error(), 0),
		},
		{
			reason: "a change that was not promised fails", answer: "kubeletFlags: [max-pods]",
			config: "spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {max-pods: $x}}}}",
			want: update("Failure", "invalid bootstrap config of Machine m: spec.joinConfiguration.nodeRegistration.kubeletExtraArgs: "+
				"the value of max-pods has characters other than letters, digits and ._:/,=%+-", 0),
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := handlers(texts{"ns/c-test-extension UpdateMachine": tc.answer})
			h.Kubelets = &kubelet.Updater{Connect: func(_ context.Context, cluster client.ObjectKey) (kubernetes.Interface, error) {
				if cluster != (client.ObjectKey{Namespace: "ns", Name: "c"}) {
					t.Errorf("connects to Cluster %s", cluster)
				}
				return nil, unreachable
			}}
			request, got := &hooksv1.UpdateMachineRequest{}, hooksv1.UpdateMachineResponse{}
			m := &request.Desired.Machine
			m.Namespace, m.Name, m.Spec.ClusterName = "ns", "m", "c"
			request.Desired.BootstrapConfig = raw(t, tc.config)
			h.updateMachine(t.Context(), request, &got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

func update(status hooksv1.ResponseStatus, message string, retry int32) hooksv1.UpdateMachineResponse {
	r := hooksv1.UpdateMachineResponse{}
	r.Status, r.Message, r.RetryAfterSeconds = status, message, retry
	return r
}
