package diagnosis_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/healthcheck/diagnosis"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// checked is a Machine of a Cluster that a health check found healthy.
func checked(cluster string, changes ...func(*clusterv1.Machine)) clusterv1.Machine {
	m := build.Machine("m", object.WithNode("m"))
	m.Spec.ClusterName = cluster
	condition.Set(m, condition.True(clusterv1.MachineHealthCheckSucceededV1Beta1Condition))
	condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
	for _, change := range changes {
		change(m)
	}
	return *m
}

func marked(m *clusterv1.Machine) {
	condition.Set(m, condition.False(clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.ConditionSeverityWarning, "UnhealthyNode", ""))
}

func nodeFails(m *clusterv1.Machine) {
	condition.Set(m, condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, "NodeConditionsFailed", ""))
}

func unchecked(m *clusterv1.Machine) { m.SetV1Beta1Conditions(nil) }

func TestCensus(t *testing.T) {
	machines := []clusterv1.Machine{
		checked("a"), checked("a", marked), checked("a", nodeFails),
		checked("b"), checked("b", marked, object.Deleting[*clusterv1.Machine]),
		checked("c"), checked("c", nodeFails, object.Deleting[*clusterv1.Machine]), // A user deletes it.
		checked("d", unchecked), checked("d", unchecked, nodeFails), // It starts.
	}
	for i := range machines {
		machines[i].UID = types.UID(fmt.Sprint(i))
	}
	census := diagnosis.NewCensus(machines)
	want := diagnosis.Fleet{Clusters: 3, UnhealthyClusters: 2, Machines: 6, UnhealthyMachines: 3}
	if diff := cmp.Diff(want, census.Fleet()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, due := range []int{1, 5, 5, 7} { // One that counts already, one whose Node looks healthy, twice, and one that has not joined.
		census.Due(&machines[due])
	}
	want = diagnosis.Fleet{Clusters: 4, UnhealthyClusters: 4, Machines: 7, UnhealthyMachines: 5}
	if diff := cmp.Diff(want, census.Fleet()); diff != "" {
		t.Errorf("with due Machines -want +got:\n%s", diff)
	}
}

func TestFleetLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, clusters, machines string
		fleet                      diagnosis.Fleet
		want                       string
	}{
		"Empty":       {"nothing is exceeded", "30%", "30%", diagnosis.Fleet{}, ""},
		"Small":       {"a percentage allows ten Clusters", "30%", "30%", diagnosis.Fleet{Clusters: 12, UnhealthyClusters: 10, Machines: 40, UnhealthyMachines: 40}, ""},
		"Eleven":      {"not eleven", "30%", "30%", diagnosis.Fleet{Clusters: 12, UnhealthyClusters: 11, Machines: 40, UnhealthyMachines: 11}, "11 of 12 Clusters have unhealthy Machines"},
		"Exactly":     {"the limit itself is allowed", "30%", "30%", diagnosis.Fleet{Clusters: 100, UnhealthyClusters: 30, Machines: 1000, UnhealthyMachines: 300}, ""},
		"Clusters":    {"one more is not", "30%", "30%", diagnosis.Fleet{Clusters: 100, UnhealthyClusters: 31, Machines: 1000, UnhealthyMachines: 31}, "31 of 100 Clusters have unhealthy Machines"},
		"Machines":    {"few Clusters, with many Machines", "30%", "30%", diagnosis.Fleet{Clusters: 100, UnhealthyClusters: 5, Machines: 1000, UnhealthyMachines: 301}, "301 of 1000 Machines are unhealthy"},
		"Few":         {"a percentage allows fifty Machines", "30%", "30%", diagnosis.Fleet{Clusters: 4, UnhealthyClusters: 4, Machines: 60, UnhealthyMachines: 50}, ""},
		"Number":      {"a number is what it is", "1", "100%", diagnosis.Fleet{Clusters: 3, UnhealthyClusters: 2, Machines: 9, UnhealthyMachines: 2}, "2 of 3 Clusters have unhealthy Machines"},
		"Zero":        {"0 stops all remediation", "0", "100%", diagnosis.Fleet{Clusters: 1, UnhealthyClusters: 1, Machines: 1, UnhealthyMachines: 1}, "1 of 1 Clusters have unhealthy Machines"},
		"Disabled":    {"100% disables it", "100%", "100%", diagnosis.Fleet{Clusters: 50, UnhealthyClusters: 50, Machines: 500, UnhealthyMachines: 500}, ""},
		"HalfOfThree": {"percentages are rounded down", "50%", "100%", diagnosis.Fleet{Clusters: 23, UnhealthyClusters: 12, Machines: 23, UnhealthyMachines: 12}, "12 of 23 Clusters have unhealthy Machines"},
	} {
		t.Run(name, func(t *testing.T) {
			limits, err := diagnosis.NewFleetLimits(tc.clusters, tc.machines)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if b := limits.Exceeded(tc.fleet); b != nil {
				got = b.Count
			}
			if got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	for _, bad := range []string{"", "some", "-1", "-5%", "%"} {
		if _, err := diagnosis.NewFleetLimits("30%", bad); err == nil {
			t.Errorf("%q must be rejected", bad)
		}
	}
}

// TestBrake checks what a brake stops.
func TestBrake(t *testing.T) {
	asked := func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.RemediateMachineAnnotation: ""}
	}
	begun := func(m *clusterv1.Machine) {
		condition.Set(m, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, "WaitingForRemediation", ""))
	}
	lost := func(m *clusterv1.Machine) { m.Status.NodeRef.Name = "lost" }
	for name, tc := range map[string]struct {
		reason     string
		machine    *clusterv1.Machine
		begins     bool
		restricted bool
		requested  bool
	}{
		"Healthy": {reason: "nothing begins", machine: build.Machine("m", object.WithNode("m"))},
		"Lost":    {reason: "it is only marked", machine: build.Machine("m", object.WithNode("m"), lost), begins: true, restricted: true},
		"Asked":   {reason: "a user decides", machine: build.Machine("m", object.WithNode("m"), lost, asked), requested: true},
		"Begun":   {reason: "its owner was asked before", machine: build.Machine("m", object.WithNode("m"), lost, begun)},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := diagnosis.New(diagnosis.Input{
				Check: build.MachineHealthCheck("h"), Cluster: build.Cluster(object.InfrastructureReady, object.Initialized),
				Targets: []*clusterv1.Machine{tc.machine}, Nodes: map[string]*corev1.Node{"m": object.Node("m")}, Now: object.Now(),
			})
			if err != nil {
				t.Fatal(err)
			}
			p.Brake = &diagnosis.Brake{Limit: "--limit=1", Of: "Clusters", Count: "2 of 3"}
			requests := slices.ContainsFunc(p.Marks(), diagnosis.Mark.Requests)
			got := fmt.Sprint(len(p.Due()) > 0, p.Restricted(), requests, p.Allowance().Reason == clusterv1.FleetUnhealthyV1Beta1Reason)
			if want := fmt.Sprint(tc.begins, tc.restricted, tc.requested, tc.restricted); got != want {
				t.Errorf("%s: begins, restricted, requested, reported: got %s, want %s", tc.reason, got, want)
			}
		})
	}
}
