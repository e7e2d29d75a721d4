package restore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestPlanNodes(t *testing.T) {
	build := object.Builder{ClusterName: "c"}
	node := func(change func(*corev1.Node)) corev1.Node {
		n := object.Node("n")
		n.Spec.ProviderID = ""
		change(n)
		return *n
	}
	annotated := func(machine, cluster string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Annotations = map[string]string{clusterv1.MachineAnnotation: machine, clusterv1.ClusterNameAnnotation: cluster}
		}
	}
	with := func(change func(*clusterv1.Machine)) []clusterv1.Machine {
		return []clusterv1.Machine{*build.Machine("m", change)}
	}
	tests := []struct {
		reason string
		node   corev1.Node
		has    owners
		want   string
	}{
		{"a Machine refers to it", node(func(*corev1.Node) {}), owners{machines: with(object.WithNode("n"))}, ""},
		{"a Machine has its provider ID", node(func(n *corev1.Node) { n.Spec.ProviderID = "test:///m" }),
			owners{machines: with(func(m *clusterv1.Machine) { m.Spec.ProviderID = "test:///m" })}, ""},
		{"its Machine has not found it yet", node(annotated("m", "c")), owners{machines: with(func(*clusterv1.Machine) {})}, ""},
		{"a pool has its provider ID", node(func(n *corev1.Node) { n.Spec.ProviderID = "test:///p" }),
			owners{pools: []clusterv1.MachinePool{*build.MachinePool("p", func(p *clusterv1.MachinePool) { p.Spec.ProviderIDList = []string{"test:///p"} })}}, ""},
		{"its Machine was deleted since", node(annotated("x", "c")), owners{machines: with(func(*clusterv1.Machine) {})}, "obsolete"},
		{"it is of another Cluster, with a Machine of the same name", node(annotated("m", "other")),
			owners{machines: with(func(*clusterv1.Machine) {})}, "obsolete"},
		{"a control plane without annotations", node(func(n *corev1.Node) { n.Labels = map[string]string{controlPlaneRole: ""} }), owners{}, "obsolete"},
		{"its Machine was fenced", node(func(*corev1.Node) {}), owners{fenced: []fleetv1.FencedMachine{{NodeName: "n"}}}, "obsolete"},
		{"nobody knows it", node(func(*corev1.Node) {}), owners{}, "unknown"},
		{"the empty name of a Node is no Node", node(func(*corev1.Node) {}), owners{machines: with(func(*clusterv1.Machine) {})}, "unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			tt.has.cluster = types.NamespacedName{Namespace: "default", Name: "c"}
			plan, got := planNodes([]corev1.Node{tt.node}, tt.has), ""
			switch {
			case len(plan.obsolete) > 0:
				got = "obsolete"
			case len(plan.unknown) > 0:
				got = "unknown"
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	plan := planNodes(nil, owners{machines: with(object.WithNode("n"))})
	if diff := cmp.Diff([]string{"m"}, plan.newer); diff != "" {
		t.Errorf("Machines that are newer than the backup, -want +got:\n%s", diff)
	}
}
