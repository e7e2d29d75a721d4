package patches

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
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
			cluster.Spec.Topology = &clusterv1.Topology{Class: "class", Version: "v1.30.0"}
			want := map[string]any{"name": "c", "namespace": "ns", "topology": map[string]any{"class": "class", "version": "v1.30.0"}}
			if tt.network != "" {
				cluster.Spec.ClusterNetwork = new(parse[clusterv1.ClusterNetwork](t, tt.network))
				want["network"] = tree(t, tt.want)
			}
			if diff := cmp.Diff(want, clusterBuiltin(cluster)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
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
