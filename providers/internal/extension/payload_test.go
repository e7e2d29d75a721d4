package extension_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	hooksv1beta1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

func inV1Beta2(c *runtimev1.ExtensionConfig) {
	for i := range c.Status.Handlers {
		c.Status.Handlers[i].PayloadVersion = "v1beta2"
	}
}

// wholeCluster returns a Cluster in both versions, with what is different in v1beta2, including a version of a reference, which v1beta2 does
// not have.
func wholeCluster(t *testing.T) (*clusterv1beta1.Cluster, *clusterv1.Cluster) {
	t.Helper()
	older, cluster := &clusterv1beta1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", Annotations: map[string]string{"a": "b"}},
		Spec: clusterv1beta1.ClusterSpec{
			Topology: &clusterv1beta1.Topology{Class: "class", Version: "v1.30.0"},
			InfrastructureRef: &corev1.ObjectReference{
				APIVersion: "infrastructure.cluster.x-k8s.io/v1beta7", Kind: "FooCluster", Name: "foo", Namespace: "default",
			},
		},
		Status: clusterv1beta1.ClusterStatus{InfrastructureReady: true},
	}, &clusterv1.Cluster{}
	testenv.Must(t, conversion.Shared().Convert(t.Context(), older, cluster))
	return older, cluster
}

// TestPayload calls two extensions of one hook, of which one wants v1beta2.
func TestPayload(t *testing.T) {
	old, newer := answering(t, map[string]any{"h": retry("Success", "", 0)}), answering(t, map[string]any{"h": retry("Success", "new", 7)})
	c := newClient(t, config("old", old, "BeforeClusterCreate/h"), with(config("newer", newer, "BeforeClusterCreate/h"), inV1Beta2))
	older, cluster := wholeCluster(t)
	sent := extension.Sent(cluster)
	request := &runtimehooksv1.BeforeClusterCreateRequest{Cluster: sent}
	response := &runtimehooksv1.BeforeClusterCreateResponse{}
	_, err := c.CallAll(t.Context(), runtimehooksv1.BeforeClusterCreate, &sent, request, response)
	testenv.Must(t, err)
	if response.RetryAfterSeconds != 7 || response.Message != "new" {
		t.Errorf("the response is %+v", response)
	}
	kind := metav1.TypeMeta{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Kind: "BeforeClusterCreateRequest"}
	var gotOld hooksv1beta1.BeforeClusterCreateRequest
	testenv.Must(t, json.Unmarshal([]byte(old.Calls()[0].Body), &gotOld))
	older.TypeMeta = metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Cluster"}
	wantOld := hooksv1beta1.BeforeClusterCreateRequest{
		TypeMeta: kind, CommonRequest: runtimehooksv1.CommonRequest{Settings: map[string]string{"of": "old"}}, Cluster: *older,
	}
	if diff := cmp.Diff(wantOld, gotOld); diff != "" {
		t.Errorf("the extension of v1.7: -want +got:\n%s", diff)
	}
	var got runtimehooksv1.BeforeClusterCreateRequest
	testenv.Must(t, json.Unmarshal([]byte(newer.Calls()[0].Body), &got))
	want := runtimehooksv1.BeforeClusterCreateRequest{
		TypeMeta: kind, CommonRequest: runtimehooksv1.CommonRequest{Settings: map[string]string{"of": "newer"}},
		Cluster: clusterv1.Cluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"},
			ObjectMeta: older.ObjectMeta,
			Spec: clusterv1.ClusterSpec{
				Topology:          clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.30.0"},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "FooCluster", Name: "foo"},
			},
			Status: clusterv1.ClusterStatus{Initialization: clusterv1.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the extension that wants v1beta2: -want +got:\n%s", diff)
	}
	if sent.Annotations[conversion.OlderVersionAnnotation] == "" || request.Cluster.Annotations[conversion.OlderVersionAnnotation] == "" {
		t.Error("the request changed")
	}
}

// TestVariables asks extensions that want v1beta1 and v1beta2 for variables.
func TestVariables(t *testing.T) {
	answer := func(variable map[string]any) *extensiontest.Server {
		variable["name"], variable["required"] = "replicas", true
		variable["schema"] = map[string]any{"openAPIV3Schema": map[string]any{"type": "integer", "minimum": 1}}
		return extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{
			"discovervariables/h": map[string]any{"status": "Success", "message": "m", "variables": []any{variable}},
		}))
	}
	metadata := map[string]any{"labels": map[string]any{"a": "b"}}
	c := newClient(t, config("old", answer(map[string]any{"metadata": metadata}), "DiscoverVariables/h"),
		with(config("newer", answer(map[string]any{"deprecatedV1Beta1Metadata": metadata}), "DiscoverVariables/h"), inV1Beta2))
	want := runtimehooksv1.DiscoverVariablesResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: "Success", Message: "m"},
		Variables: []clusterv1.ClusterClassVariable{{
			Name: "replicas", Required: ptr.To(true), DeprecatedV1Beta1Metadata: clusterv1.ClusterClassVariableMetadata{Labels: map[string]string{"a": "b"}},
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To[int64](1)}},
		}},
	}
	for _, name := range []string{"h.old", "h.newer"} {
		var got runtimehooksv1.DiscoverVariablesResponse
		testenv.Must(t, call(t, c, runtimehooksv1.DiscoverVariables, cluster(), name, nil, &runtimehooksv1.DiscoverVariablesRequest{}, &got))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestAfterClusterUpgrade gets an answer that blocks, from extensions of either version: v1.12 had that with v1beta1.
func TestAfterClusterUpgrade(t *testing.T) {
	server := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{"afterclusterupgrade/h": retry("Success", "m", 7)}))
	for _, payload := range []func(*runtimev1.ExtensionConfig){func(*runtimev1.ExtensionConfig) {}, inV1Beta2} {
		c := newClient(t, with(config("e", server, "AfterClusterUpgrade/h"), payload))
		response := &runtimehooksv1.AfterClusterUpgradeResponse{}
		answers, err := c.CallAll(t.Context(), runtimehooksv1.AfterClusterUpgrade, cluster(), &runtimehooksv1.AfterClusterUpgradeRequest{}, response)
		testenv.Must(t, err)
		if response.Message != "m" || response.RetryAfterSeconds != 7 || answers[0].RetryAfter != 7*time.Second {
			t.Errorf("response %+v, answers %+v", response, answers)
		}
	}
}

// TestNewHooks is about hooks that v1.7 did not have: their Cluster is in v1beta2, also if the extension does not request that.
func TestNewHooks(t *testing.T) {
	server := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{"beforeworkersupgrade/h": retry("Success", "m", 7)}))
	c := newClient(t, config("e", server, "BeforeWorkersUpgrade/h"))
	request := &runtimehooksv1.BeforeWorkersUpgradeRequest{Cluster: *cluster(), FromKubernetesVersion: "v1.30.0"}
	request.Cluster.APIVersion = clusterv1.GroupVersion.String()
	response := &runtimehooksv1.BeforeWorkersUpgradeResponse{}
	_, err := c.CallAll(t.Context(), runtimehooksv1.BeforeWorkersUpgrade, cluster(), request, response)
	testenv.Must(t, err)
	body := server.Calls()[0].Body
	if response.RetryAfterSeconds != 7 || !strings.Contains(body, `"apiVersion":"cluster.x-k8s.io/v1beta2"`) {
		t.Errorf("response %+v to %s", response, body)
	}
}
