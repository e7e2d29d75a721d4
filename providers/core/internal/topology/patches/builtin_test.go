package patches

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
)

func TestClusterBuiltin(t *testing.T) {
	tests := []struct{ reason, network, want string }{
		{"no network", ``, ``},
		{"a network without ranges", `{serviceDomain: cluster.local}`, `{serviceDomain: cluster.local, ipFamily: IPv4}`},
		{"ranges", `{services: {cidrBlocks: [10.10.0.0/16]}, pods: {cidrBlocks: ["10.0.0.0/16", "fd00::/48"]}}`,
			`{services: [10.10.0.0/16], pods: ["10.0.0.0/16", "fd00::/48"], ipFamily: DualStack}`},
		{"IPv6", `{pods: {cidrBlocks: ["fd00::/48"]}}`, `{pods: ["fd00::/48"], ipFamily: IPv6}`},
		{"inconsistent ranges", `{services: {cidrBlocks: ["fd00::/48"]}, pods: {cidrBlocks: [10.0.0.0/16]}}`,
			`{services: ["fd00::/48"], pods: [10.0.0.0/16], ipFamily: Invalid}`},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			cluster := &clusterv1.Cluster{}
			cluster.Name, cluster.Namespace = "c", "ns"
			cluster.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}, Version: "v1.30.0"}
			want := map[string]any{"name": "c", "namespace": "ns", "metadata": tree(t, ownLabels), "topology": map[string]any{"class": "class", "classNamespace": "ns", "classRef": map[string]any{"name": "class", "namespace": "ns"}, "version": "v1.30.0"}}
			if tt.network != "" {
				cluster.Spec.ClusterNetwork = parse[clusterv1.ClusterNetwork](t, tt.network)
				want["network"] = tree(t, tt.want)
			}
			if diff := cmp.Diff(want, clusterBuiltin(cluster)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// ownLabels are the labels that the topology controller sets.
const ownLabels = `{labels: {cluster.x-k8s.io/cluster-name: c, topology.cluster.x-k8s.io/owned: ""}}`

func TestMetadataBuiltins(t *testing.T) {
	cluster := parse[clusterv1.Cluster](t, `
metadata:
  name: c
  uid: "123"
  labels: {region: west}
  annotations: {contact: ops, kubectl.kubernetes.io/last-applied-configuration: "{}", cluster.x-k8s.io/conversion-data: x, conversion.cluster.x-k8s.io/older-version: y, runtime.cluster.x-k8s.io/pending-hooks: AfterClusterUpgrade}
spec: {topology: {classRef: {name: k}, version: v1.30.0, controlPlane: {metadata: {labels: {tier: cp}}}}}`)
	got := clusterBuiltin(&cluster)
	delete(got, "topology")
	want := tree(t, `{name: c, namespace: "", uid: "123", metadata: {labels: {region: west, cluster.x-k8s.io/cluster-name: c, topology.cluster.x-k8s.io/owned: ""}, annotations: {contact: ops}}}`)
	if diff := cmp.Diff(want, any(got)); diff != "" {
		t.Errorf("of the Cluster (-want +got):\n%s", diff)
	}
	if len(cluster.Labels) != 1 || len(cluster.Annotations) != 5 {
		t.Errorf("the Cluster was changed: %v, %v", cluster.Labels, cluster.Annotations)
	}
	cp := controlPlaneBuiltin(&cluster, &unstructured.Unstructured{Object: map[string]any{}})
	if diff := cmp.Diff(tree(t, `{name: "", metadata: {labels: {tier: cp}}}`), any(cp)); diff != "" {
		t.Errorf("of the control plane (-want +got):\n%s", diff)
	}
	topology := parse[clusterv1.MachinePoolTopology](t, `{class: a, name: mp, metadata: {annotations: {x: z}}}`)
	w := ForMachinePool(&topology, &clusterv1.MachinePool{}, Template{}, Template{})
	if diff := cmp.Diff(tree(t, `{annotations: {x: z}}`), w.builtinVariables()["metadata"]); diff != "" {
		t.Errorf("of workers (-want +got):\n%s", diff)
	}
	for _, path := range []string{"builtin.cluster.uid", "builtin.cluster.topology.classRef.name", "builtin.cluster.topology.classRef.namespace", "builtin.cluster.topology.classNamespace", "builtin.cluster.metadata.labels", "builtin.controlPlane.metadata", "builtin.machineDeployment.metadata.annotations", "builtin.machinePool.metadata"} {
		if reference, err := variable.Parse(path); err != nil || !isBuiltin(reference) {
			t.Errorf("%s is no builtin variable: %v", path, err)
		}
	}
}

func TestFunctions(t *testing.T) {
	p := newParser()
	for name, want := range map[string]bool{
		"upper": true, "max": true, "semverCompare": true, "coalesce": true, "default": true, "indent": true, "replace": true,
		"trimPrefix": true, "sha256sum": true, "toYaml": false, "env": false, "now": false, "genCA": false, "randInt": false,
	} {
		_, err := p.Parse("{{ " + name + " }}")
		if found := err == nil; found != want {
			t.Errorf("%s: %v, want it defined: %t", name, err, want)
		}
	}
}

func TestForMachineDeployment(t *testing.T) {
	topology := parse[clusterv1.MachineDeploymentTopology](t, `{class: a, name: md, replicas: 2, variables: {overrides: [{name: x, value: 1}]}}`)
	desired := parse[clusterv1.MachineDeployment](t, `
metadata: {name: c-md-x}
spec: {clusterName: c, selector: {}, template: {spec: {clusterName: c, version: v1.30.0, bootstrap: {configRef: {name: b}}, infrastructureRef: {name: i}}}}`)
	got := ForMachineDeployment(&topology, &desired, Template{}, Template{})
	want := Workers{Class: "a", TopologyName: "md", Name: "c-md-x", Version: "v1.30.0", Replicas: new(int32(2)),
		BootstrapName: "b", InfrastructureName: "i", Overrides: topology.Variables.Overrides}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	pool := parse[clusterv1.MachinePoolTopology](t, `{class: a, name: mp}`)
	desiredPool := parse[clusterv1.MachinePool](t, `
metadata: {name: c-mp-x}
spec: {clusterName: c, template: {spec: {clusterName: c, bootstrap: {}, infrastructureRef: {name: i}}}}`)
	gotPool := ForMachinePool(&pool, &desiredPool, Template{}, Template{})
	if diff := cmp.Diff(Workers{Class: "a", TopologyName: "mp", Name: "c-mp-x", InfrastructureName: "i"}, gotPool); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
