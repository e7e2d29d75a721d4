package names

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

func cluster(name string) *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid"}}
}

func TestNamesOfClusterObjects(t *testing.T) {
	custom := "cp-of-{{ .cluster.name }}"
	long := strings.Repeat("c", 70)
	cases := map[string]struct {
		reason                  string
		cluster                 *clusterv1.Cluster
		strategy, infraStrategy string
		infra                   string
		cp                      string
	}{
		"Derived": {
			reason:  "suffixes derive from the UID and the purpose",
			cluster: cluster("c"),
			infra:   "c-" + naming.Suffix("uid", "InfrastructureCluster"), cp: "c-" + naming.Suffix("uid", "ControlPlane"),
		},
		"Strategy": {
			reason: "the class has a naming strategy for the control plane", cluster: cluster("c"), strategy: custom,
			infra: "c-" + naming.Suffix("uid", "InfrastructureCluster"), cp: "cp-of-c",
		},
		"Infrastructure": {
			reason: "the class has one for the infrastructure", cluster: cluster("c"), infraStrategy: "{{ .cluster.name }}-infra-{{ .random }}",
			infra: "c-infra-" + naming.Suffix("uid", "InfrastructureCluster"), cp: "c-" + naming.Suffix("uid", "ControlPlane"),
		},
		"Existing": {
			reason: "existing names are kept",
			cluster: func() *clusterv1.Cluster {
				c := cluster("c")
				c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Name: "i"}
				c.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{Name: "k"}
				return c
			}(),
			strategy: custom, infra: "i", cp: "k",
		},
		"Long": {
			reason: "long names are truncated to 63 characters", cluster: cluster(long),
			infra: strings.Repeat("c", 58) + naming.Suffix("uid", "InfrastructureCluster"),
			cp:    strings.Repeat("c", 58) + naming.Suffix("uid", "ControlPlane"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			class := &clusterv1.ClusterClass{}
			class.Spec.ControlPlane.Naming.Template, class.Spec.Infrastructure.Naming.Template = tc.strategy, tc.infraStrategy
			cp, err := ControlPlane(tc.cluster, class)
			if err != nil {
				t.Fatal(err)
			}
			infra, err := InfrastructureCluster(tc.cluster, class)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.infra, tc.cp}, []string{infra, cp}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNamesOfWorkers(t *testing.T) {
	fixed := "{{ .cluster.name }}-{{ .machineDeployment.topologyName }}"
	first := "c-md-" + naming.Suffix("uid", "MachineDeployment", "md")
	second := "c-md-" + naming.Suffix("uid", "MachineDeployment", "md", "1")
	cases := map[string]struct {
		reason      string
		strategy    string
		terminating []string
		want        string
		ok          bool
	}{
		"First":         {reason: "the first name has ordinal 0", want: first, ok: true},
		"AfterDeletion": {reason: "a terminating object still has the first name", terminating: []string{first}, want: second, ok: true},
		"Fixed":         {reason: "a strategy without random characters", strategy: fixed, want: "c-md", ok: true},
		"FixedAndInUse": {reason: "no other name is possible, so the new object waits", strategy: fixed, terminating: []string{"c-md"}},
		"OtherName":     {reason: "terminating objects with other names do not matter", terminating: []string{"x"}, want: first, ok: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := Workers{Kind: "MachineDeployment", Topology: "md", Strategy: MachineDeploymentStrategy, Template: tc.strategy}
			got, ok, err := n.Name(cluster("c"), sets.New(tc.terminating...).Has)
			if err != nil || got != tc.want || ok != tc.ok {
				t.Errorf("%s: name = %q, %v, %v; want %q, %v", tc.reason, got, ok, err, tc.want, tc.ok)
			}
		})
	}
}
