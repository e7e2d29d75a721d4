package recordedcluster

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
)

// written is when the objects of record were written last, and uid the UID of its Cluster.
const (
	written = "2026-01-02T03:04:05Z"
	uid     = "1d36a027-2291-4e35-a7c6-1d9080a2a398"
)

// record returns an object as it was recorded.
func record(kind, name, owner string, fields map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind,
		"metadata": map[string]any{
			"name": name, "namespace": "default", "uid": uid[:len(uid)-len(kind)] + strings.ToLower(kind),
			"creationTimestamp": "2026-01-02T03:00:00Z",
			"managedFields":     []any{map[string]any{"manager": "manager", "time": written}},
		},
	}}
	if kind == "Cluster" {
		o.SetUID(uid)
	}
	if owner != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: owner, Name: "x", UID: uid}})
	}
	maps.Copy(o.Object, fields)
	return o
}

func TestNewCopy(t *testing.T) {
	state := recorded.State{
		Cluster: &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "127.0.0.1", Port: 20000}}},
		Objects: []*unstructured.Unstructured{
			record("ClusterClass", "quick", "", nil),
			record("InMemoryClusterTemplate", "quick", "ClusterClass", nil),
			record("Cluster", "x", "", map[string]any{
				"spec":   map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(20000)}},
				"status": map[string]any{"phase": "Deleting"},
			}),
			record("Machine", "x-1", "Cluster", nil),
		},
		Secrets: []*unstructured.Unstructured{record("Secret", "x-kubeconfig", "", map[string]any{"data": map[string]any{"value": "stripped"}})},
	}
	now := time.Date(2026, 6, 1, 0, 0, 10, 0, time.UTC)
	c, err := NewCopy(state, "other", 30001, now)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Class) != 2 || len(c.Others) != 1 || len(c.Secrets) != 1 || c.Cluster == nil {
		t.Fatalf("%d objects of the class, %d others, %d Secrets", len(c.Class), len(c.Others), len(c.Secrets))
	}
	for _, o := range c.Objects() {
		if created := o.GetCreationTimestamp().UTC(); o.GetNamespace() != "other" || !created.Equal(now.Add(-4*time.Minute-5*time.Second)) {
			t.Errorf("%s %s is in namespace %s, created at %s", o.GetKind(), o.GetName(), o.GetNamespace(), created)
		}
	}
	if id := c.Cluster.GetUID(); id == uid || c.Others[0].GetOwnerReferences()[0].UID != id {
		t.Errorf("the UID of the Cluster is %s, its Machine's owner is %v", id, c.Others[0].GetOwnerReferences())
	}
	want := map[string]any{"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": int64(30001)}}
	if diff := cmp.Diff(want, c.Cluster.Object["spec"]); diff != "" {
		t.Errorf("spec of the Cluster (-want +got)\n%s", diff)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(c.Kubeconfig())
	if err != nil || config.Host != "https://127.0.0.1:30001" {
		t.Errorf("kubeconfig: %v, %v", config, err)
	}
}
