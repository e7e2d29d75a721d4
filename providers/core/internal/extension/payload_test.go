package extension_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooksv1beta2 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1alpha1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/exp/runtime/hooks/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/extensiontest"
)

func inV1Beta2(c *runtimev1.ExtensionConfig) {
	for i := range c.Status.Handlers {
		c.Status.Handlers[i].PayloadVersion = "v1beta2"
	}
}

// wholeCluster returns a Cluster with what is different in v1beta2, including a version of a reference, which v1beta2 does not have.
func wholeCluster() clusterv1.Cluster {
	return clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", Annotations: map[string]string{"a": "b"}},
		Spec: clusterv1.ClusterSpec{
			Topology:          &clusterv1.Topology{Class: "class", Version: "v1.30.0"},
			InfrastructureRef: &corev1.ObjectReference{APIVersion: "infrastructure.cluster.x-k8s.io/v1beta7", Kind: "FooCluster", Name: "foo"},
		},
		Status: clusterv1.ClusterStatus{InfrastructureReady: true},
	}
}

// TestPayload calls two extensions of one hook, of which one wants v1beta2.
func TestPayload(t *testing.T) {
	old, newer := answering(t, map[string]any{"h": retry("Success", "", 0)}), answering(t, map[string]any{"h": retry("Success", "new", 7)})
	c := newClient(t, config("old", old, "BeforeClusterCreate/h"), with(config("newer", newer, "BeforeClusterCreate/h"), inV1Beta2))
	sent := wholeCluster()
	request := &runtimehooksv1.BeforeClusterCreateRequest{Cluster: sent}
	response := &runtimehooksv1.BeforeClusterCreateResponse{}
	_, err := c.CallAll(t.Context(), runtimehooksv1.BeforeClusterCreate, &sent, request, response)
	testenv.Must(t, err)
	if response.RetryAfterSeconds != 7 || response.Message != "new" {
		t.Errorf("the response is %+v", response)
	}
	kind := metav1.TypeMeta{APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Kind: "BeforeClusterCreateRequest"}
	var gotOld runtimehooksv1.BeforeClusterCreateRequest
	testenv.Must(t, json.Unmarshal([]byte(old.Calls()[0].Body), &gotOld))
	wantOld := runtimehooksv1.BeforeClusterCreateRequest{
		TypeMeta: kind, CommonRequest: runtimehooksv1.CommonRequest{Settings: map[string]string{"of": "old"}}, Cluster: sent,
	}
	if diff := cmp.Diff(wantOld, gotOld); diff != "" {
		t.Errorf("the extension of v1.7: -want +got:\n%s", diff)
	}
	var got hooksv1beta2.BeforeClusterCreateRequest
	testenv.Must(t, json.Unmarshal([]byte(newer.Calls()[0].Body), &got))
	want := hooksv1beta2.BeforeClusterCreateRequest{
		TypeMeta: kind, CommonRequest: hooksv1beta2.CommonRequest{Settings: map[string]string{"of": "newer"}},
		Cluster: clusterv1beta2.Cluster{
			TypeMeta:   metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"},
			ObjectMeta: sent.ObjectMeta,
			Spec: clusterv1beta2.ClusterSpec{
				Topology:          clusterv1beta2.Topology{ClassRef: clusterv1beta2.ClusterClassRef{Name: "class"}, Version: "v1.30.0"},
				InfrastructureRef: clusterv1beta2.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "FooCluster", Name: "foo"},
			},
			Status: clusterv1beta2.ClusterStatus{Initialization: clusterv1beta2.ClusterInitializationStatus{InfrastructureProvisioned: ptr.To(true)}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the extension that wants v1beta2: -want +got:\n%s", diff)
	}
}

// TestVariables asks an extension that wants v1beta2 for variables.
func TestVariables(t *testing.T) {
	server := extensiontest.Serve(t, extensiontest.Options{}, extensiontest.Answers(map[string]any{
		"discovervariables/h": map[string]any{"status": "Success", "message": "m", "variables": []any{map[string]any{
			"name": "replicas", "required": true, "deprecatedV1Beta1Metadata": map[string]any{"labels": map[string]any{"a": "b"}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "integer", "minimum": 1}},
		}}},
	}))
	c := newClient(t, with(config("e", server, "DiscoverVariables/h"), inV1Beta2))
	var got runtimehooksv1.DiscoverVariablesResponse
	testenv.Must(t, call(t, c, runtimehooksv1.DiscoverVariables, ptr.To(wholeCluster()), "h.e", nil, &runtimehooksv1.DiscoverVariablesRequest{}, &got))
	want := runtimehooksv1.DiscoverVariablesResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: "Success", Message: "m"},
		Variables: []clusterv1.ClusterClassVariable{{
			Name: "replicas", Required: true, Metadata: clusterv1.ClusterClassVariableMetadata{Labels: map[string]string{"a": "b"}},
			Schema: clusterv1.VariableSchema{OpenAPIV3Schema: clusterv1.JSONSchemaProps{Type: "integer", Minimum: ptr.To[int64](1)}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
