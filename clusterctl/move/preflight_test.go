package move

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/transfer"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

func object(kind string, content map[string]any) graph.Object {
	gvk := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta1", Kind: kind}
	if content == nil {
		content = map[string]any{}
	}
	o := graph.Object{Unstructured: &unstructured.Unstructured{Object: content}, Kind: graph.Kind{GroupVersionKind: gvk, Namespaced: true, Move: true}}
	o.SetNamespace("ns")
	o.SetName("x")
	return o
}

func ready() map[string]any {
	return map[string]any{"status": map[string]any{
		"infrastructureReady": true, "conditions": []any{map[string]any{"type": "ControlPlaneInitialized", "status": "True"}},
	}}
}

// shared is a ready Cluster with a class in namespace "classes".
func shared() map[string]any {
	c := ready()
	c["spec"] = map[string]any{"topology": map[string]any{"class": "k", "classNamespace": "classes"}}
	return c
}

func provider(version string) inventory.Inventory {
	return inventory.Inventory{{ProviderName: "aws", Type: string(clusterctlv1.InfrastructureProviderType), Version: version}}
}

func TestCheckStart(t *testing.T) {
	withControlPlane := ready()
	withControlPlane["spec"] = map[string]any{"controlPlaneRef": map[string]any{"name": "cp"}}
	deleted := object("Cluster", ready())
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	marked := object("Cluster", nil)
	marked.SetAnnotations(map[string]string{transfer.MoveAnnotation: "m"})
	tests := []struct {
		reason  string
		objects []graph.Object
		in      input
		started bool
		want    string // in the error; empty means that there is none
	}{
		{reason: "a ready Cluster is moved", objects: []graph.Object{object("Cluster", ready())}},
		{reason: "a Cluster without infrastructure is not", objects: []graph.Object{object("Cluster", nil)}, want: "Cluster ns/x is not provisioned: status.infrastructureReady"},
		{reason: "but it is if the move was interrupted: the Cluster is paused", objects: []graph.Object{object("Cluster", nil)}, started: true},
		{reason: "a control plane must be ready", objects: []graph.Object{object("Cluster", withControlPlane)}, want: "status.controlPlaneReady is not true"},
		{reason: "a Machine needs a Node", objects: []graph.Object{object("Machine", nil)}, want: "Machine ns/x has no status.nodeRef"},
		{reason: "what is being deleted is not moved", objects: []graph.Object{deleted}, want: "Cluster ns/x is being deleted"},
		{reason: "the target needs the providers", in: input{Source: provider("v1.0.0")}, want: "does not have provider infrastructure-aws"},
		{reason: "an older provider is not enough", in: input{Source: provider("v1.10.0"), Target: provider("v1.9.0")}, want: "has version v1.9.0 in the target cluster, older than v1.10.0"},
		{reason: "a newer one is", in: input{Source: provider("v1.9.0"), Target: provider("v1.10.0")}},
		{reason: "providers are checked again if the move was interrupted", in: input{Source: provider("v1.0.0")}, started: true, want: "infrastructure-aws"},
		{reason: "a directory needs no providers", in: input{Source: provider("v1.0.0"), NoCluster: true}},
		{reason: "a Cluster without infrastructure is written to a directory", objects: []graph.Object{object("Cluster", nil)}, in: input{NoCluster: true, Backup: true}},
		{reason: "so is a Machine without a Node", objects: []graph.Object{object("Machine", nil)}, in: input{NoCluster: true, Backup: true}},
		{reason: "so is what is being deleted", objects: []graph.Object{deleted}, in: input{NoCluster: true, Backup: true}},
		{reason: "what is paused is not", objects: []graph.Object{object("Cluster", map[string]any{"spec": map[string]any{"paused": true}})},
			in: input{NoCluster: true, Backup: true}, want: "--keep-paused"},
		{reason: "a dry run without a target checks the source", objects: []graph.Object{object("Machine", nil)}, in: input{NoCluster: true}, want: "has no status.nodeRef"},
		{reason: "the target must serve the kinds", objects: []graph.Object{object("Cluster", ready())},
			in: input{Served: func(schema.GroupVersionKind) bool { return false }}, want: "does not serve kind Cluster of cluster.x-k8s.io/v1beta1"},
		{reason: "the target needs classes of other namespaces", objects: []graph.Object{object("Cluster", shared())},
			in: input{MissingClasses: []types.NamespacedName{{Namespace: "classes", Name: "k"}}}, want: "Cluster ns/x has ClusterClass classes/k, which the target cluster does not have"},
		{reason: "those that it has are not reported", objects: []graph.Object{object("Cluster", shared())},
			in: input{MissingClasses: []types.NamespacedName{{Namespace: "ns", Name: "k"}}}},
		{reason: "an active Cluster of the target is not replaced", objects: []graph.Object{object("Cluster", ready())},
			in: input{Existing: []graph.Object{object("Cluster", nil)}}, want: "already has Cluster ns/x"},
		{reason: "a paused one is", objects: []graph.Object{object("Cluster", ready())},
			in: input{Existing: []graph.Object{object("Cluster", map[string]any{"spec": map[string]any{"paused": true}})}}},
		{reason: "a copy of this move is", objects: []graph.Object{object("Cluster", ready())}, in: input{Existing: []graph.Object{marked}}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			g, err := graph.Build(tc.objects)
			if err != nil {
				t.Fatal(err)
			}
			tc.in.ID, tc.in.Graph = "m", g
			if tc.in.Served == nil {
				tc.in.Served = func(schema.GroupVersionKind) bool { return true }
			}
			err = checkStart(tc.in, tc.started)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestImprecise(t *testing.T) {
	var objects []graph.Object
	for i := range shown + 2 {
		o := object("Machine", nil)
		o.SetName(fmt.Sprintf("m%d", i))
		objects = append(objects, o)
	}
	deleted := object("Cluster", ready())
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	g, err := graph.Build(append(objects, deleted))
	if err != nil {
		t.Fatal(err)
	}
	got := imprecise(input{Graph: g, Backup: true})
	if len(got) != 2 || !strings.HasPrefix(got[0], "Machine ns/m0, Machine ns/m1, Machine ns/m2, Machine ns/m3, Machine ns/m4, 2 others has no Node") ||
		!strings.HasPrefix(got[1], "Cluster ns/x is being deleted") {
		t.Errorf("got %q", got)
	}
}
