package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/runtime-extension-test/internal/answer"
)

// texts are the answers, by ConfigMap and hook.
type texts map[string]string

// Take implements Source.
func (s texts) Take(_ context.Context, config types.NamespacedName, hook string) (answer.Answer, error) {
	return answer.Parse(hook, s[config.String()+" "+hook])
}

func handlers(s texts) *Handlers {
	return &Handlers{Source: s, Clock: clocktesting.NewFakeClock(time.Time{})}
}

func TestLifecycleHooks(t *testing.T) {
	h := handlers(texts{
		"ns/c-test-extension BeforeClusterUpgrade": "{message: later, retryAfterSeconds: 5}",
		"ns/shared BeforeClusterUpgrade":           "{status: Failure, message: refused}",
	})
	tests := []struct {
		reason, cluster string
		settings        map[string]string
		want            runtimehooksv1.BeforeClusterUpgradeResponse
	}{
		{reason: "The ConfigMap is the Cluster's.", cluster: "c", want: upgradeResponse("Success", "later", 5)},
		{reason: "Other Clusters are not affected.", cluster: "d", want: upgradeResponse("Success", "", 0)},
		{reason: "A setting names another ConfigMap.", cluster: "c", settings: map[string]string{Setting: "ns/shared"}, want: upgradeResponse("Failure", "refused", 0)},
		{
			reason: "A setting that names none is not ignored.", cluster: "c", settings: map[string]string{Setting: "shared"},
			want: upgradeResponse("Failure", `setting answers is "shared", but must be the namespace and name of a ConfigMap, such as default/answers`, 0),
		},
	}
	for _, tc := range tests {
		request := &runtimehooksv1.BeforeClusterUpgradeRequest{}
		request.Settings = tc.settings
		request.Cluster.Namespace, request.Cluster.Name = "ns", tc.cluster
		got := runtimehooksv1.BeforeClusterUpgradeResponse{}
		h.beforeClusterUpgrade(t.Context(), request, &got)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s\n%s", tc.reason, diff)
		}
	}
}

func upgradeResponse(status runtimehooksv1.ResponseStatus, message string, retry int32) runtimehooksv1.BeforeClusterUpgradeResponse {
	r := runtimehooksv1.BeforeClusterUpgradeResponse{}
	r.Status, r.Message, r.RetryAfterSeconds = status, message, retry
	return r
}

// TestDelay checks that a response waits, and not longer than its caller.
func TestDelay(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Time{})
	h := &Handlers{Source: texts{"ns/c-test-extension BeforeClusterUpgrade": "delay: 5s"}, Clock: clock}
	call := func(ctx context.Context) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			request := &runtimehooksv1.BeforeClusterUpgradeRequest{}
			request.Cluster.Namespace, request.Cluster.Name = "ns", "c"
			h.beforeClusterUpgrade(ctx, request, &runtimehooksv1.BeforeClusterUpgradeResponse{})
		}()
		return done
	}
	done := call(t.Context())
	for !clock.HasWaiters() {
		select {
		case <-done:
			t.Fatal("the response did not wait")
		default:
		}
	}
	clock.Step(5 * time.Second)
	<-done
	ctx, cancel := context.WithCancel(t.Context())
	done = call(ctx)
	cancel()
	<-done
}

func TestGeneratePatches(t *testing.T) {
	h := handlers(texts{"ns/c-test-extension GeneratePatches": `
patches:
- kind: MachineTemplate
  jsonPatches:
  - {op: add, path: /spec/size, value: 3}
  - {op: replace, path: /spec/name, valueFrom: {variable: settings.name}}
  - {op: add, path: /spec/none, valueFrom: {variable: none}}
  - {op: remove, path: /spec/old}
`})
	item := func(uid types.UID, kind string, variables ...runtimehooksv1.Variable) runtimehooksv1.GeneratePatchesRequestItem {
		return runtimehooksv1.GeneratePatchesRequestItem{UID: uid, Object: runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q}`, kind)}, Variables: variables}
	}
	request := &runtimehooksv1.GeneratePatchesRequest{
		Variables: []runtimehooksv1.Variable{variable("builtin", `{"cluster":{"namespace":"ns","name":"c"}}`), variable("settings", `{"name":"all"}`)},
		Items: []runtimehooksv1.GeneratePatchesRequestItem{
			item("a", "MachineTemplate"), item("b", "ClusterTemplate"), item("c", "MachineTemplate", variable("settings", `{"name":"own"}`)),
		},
	}
	got := &runtimehooksv1.GeneratePatchesResponse{}
	h.generatePatches(t.Context(), request, got)
	patch := func(uid types.UID, name string) runtimehooksv1.GeneratePatchesResponseItem {
		return runtimehooksv1.GeneratePatchesResponseItem{UID: uid, PatchType: runtimehooksv1.JSONPatchType, Patch: fmt.Appendf(nil,
			`[{"op":"add","path":"/spec/size","value":3},{"op":"replace","path":"/spec/name","value":%q},{"op":"remove","path":"/spec/old"}]`, name)}
	}
	want := &runtimehooksv1.GeneratePatchesResponse{Items: []runtimehooksv1.GeneratePatchesResponseItem{patch("a", "all"), patch("c", "own")}}
	want.Status = runtimehooksv1.ResponseStatusSuccess
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func variable(name, value string) runtimehooksv1.Variable {
	return runtimehooksv1.Variable{Name: name, Value: apiextensionsv1.JSON{Raw: json.RawMessage(value)}}
}

// TestUnknownCluster checks that a request without the name of its Cluster is not answered for another one.
func TestUnknownCluster(t *testing.T) {
	got := &runtimehooksv1.ValidateTopologyResponse{}
	handlers(texts{}).validateTopology(t.Context(), &runtimehooksv1.ValidateTopologyRequest{}, got)
	if got.Status != runtimehooksv1.ResponseStatusFailure {
		t.Errorf("got %+v", got)
	}
}

func TestDiscoverVariables(t *testing.T) {
	h := handlers(texts{"ns/v DiscoverVariables": "variables: [{name: v, required: true, schema: {openAPIV3Schema: {type: string}}}]"})
	for reason, tc := range map[string]struct {
		settings map[string]string
		want     []string
	}{
		"Without a setting, there are no variables.": {},
		"The setting names the ConfigMap.":           {settings: map[string]string{Setting: "ns/v"}, want: []string{"v"}},
	} {
		got := &runtimehooksv1.DiscoverVariablesResponse{}
		h.discoverVariables(t.Context(), &runtimehooksv1.DiscoverVariablesRequest{TypeMeta: metav1.TypeMeta{}, CommonRequest: runtimehooksv1.CommonRequest{Settings: tc.settings}}, got)
		var names []string
		for _, v := range got.Variables {
			names = append(names, v.Name)
		}
		if diff := cmp.Diff(tc.want, names); diff != "" {
			t.Errorf("%s\n%s", reason, diff)
		}
	}
}
