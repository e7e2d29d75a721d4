package replicas

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// machine returns a Machine that is an hour old.
func machine(name string, conditions ...metav1.Condition) *clusterv1.Machine {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	m.SetConditions(conditions)
	return m
}

func deleted(m *clusterv1.Machine, ago time.Duration) *clusterv1.Machine {
	m.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)}
	return m
}

func lines(l ...string) string { return strings.Join(l, "\n") }

func old(message string) metav1.Condition {
	return report.False("UpToDate", "NotUpToDate", "%s", message)
}

func TestReports(t *testing.T) {
	yes := report.True("UpToDate", "UpToDate", "")
	newborn := machine("new")
	newborn.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	waits := report.False("OwnerRemediated", "WaitingForRemediation", "waits")
	unhealthy := report.False("HealthCheckSucceeded", "UnhealthyNode", "bad")
	for _, tt := range []struct {
		reason    string
		got, want metav1.Condition
	}{
		{"without Machines there is nothing to complain about", MachinesReady("MachinesReady", nil), report.True("MachinesReady", "NoReplicas", "")},
		{"a Machine without the condition is unknown", MachinesReady("MachinesReady", []*clusterv1.Machine{machine("a")}),
			report.Unknown("MachinesReady", "ReadyUnknown", "* Machine a: Condition Ready not yet reported")},
		{"a new Machine is given time", MachinesUpToDate("MachinesUpToDate", []*clusterv1.Machine{newborn, machine("a", yes)}, now),
			report.True("MachinesUpToDate", "UpToDate", "")},
		{"an older one is not", MachinesUpToDate("MachinesUpToDate", []*clusterv1.Machine{machine("b"), machine("a", yes)}, now),
			report.Unknown("MachinesUpToDate", "UpToDateUnknown", "* Machine b: Condition UpToDate not yet reported")},
		{"a rollout names each reason once, versions first", RollingOut([]*clusterv1.Machine{
			machine("a", old("* Failure domain x, y required\n* Version v1, v2 required")), machine("b", old("* Version v1, v2 required")), machine("c", yes)}),
			report.True("RollingOut", "RollingOut", "%s", lines("Rolling out 2 not up-to-date replicas", "* Version v1, v2 required", "* Failure domain x, y required"))},
		{"no rollout", RollingOut([]*clusterv1.Machine{machine("a", yes)}), report.False("RollingOut", "NotRollingOut", "")},
		{"replicas are missing", Scale{Current: 1, Desired: ptr.To[int32](3)}.Up(), report.True("ScalingUp", "ScalingUp", "Scaling up from 1 to 3 replicas")},
		{"and cannot be created", Scale{Current: 1, Desired: ptr.To[int32](3), Blocked: []string{"a", "b"}}.Up(),
			report.True("ScalingUp", "ScalingUp", "%s", lines("Scaling up from 1 to 3 replicas is blocked because:", "* a", "* b"))},
		{"enough replicas", Scale{Current: 3, Desired: ptr.To[int32](3), Blocked: []string{"a"}}.Up(), report.False("ScalingUp", "NotScalingUp", "")},
		{"nothing is known of what is wanted", Scale{Current: 3}.Up(), report.Unknown("ScalingUp", "WaitingForReplicasSet", "Waiting for spec.replicas set")},
		{"too many, which takes long", Scale{Current: 3, Desired: ptr.To[int32](1), Stale: "x"}.Down(),
			report.True("ScalingDown", "ScalingDown", "%s", lines("Scaling down from 3 to 1 replicas", "* x"))},
		{"a deletion wants none", Scale{Current: 3, Desired: ptr.To[int32](3), Deleting: true}.Down(),
			report.True("ScalingDown", "ScalingDown", "Scaling down from 3 to 0 replicas")},
		{"remediation has begun", Remediating("MachineSet", []*clusterv1.Machine{machine("a", unhealthy, waits), machine("b", unhealthy)}),
			report.True("Remediating", "Remediating", "* Machine a: waits")},
		{"unhealthy, and nobody remediates", Remediating("MachineSet", []*clusterv1.Machine{machine("b", unhealthy), machine("a", unhealthy)}),
			report.False("Remediating", "NotRemediating", "Machines a, b are not healthy (not to be remediated by MachineSet)")},
		{"healthy", Remediating("MachineSet", []*clusterv1.Machine{machine("a")}), report.False("Remediating", "NotRemediating", "")},
		{"a deletion with Machines", Deleting(true, Machines(2)...), report.True("Deleting", "Deleting", "Deleting 2 Machines")},
		{"without", Deleting(true, Machines(0)...), report.True("Deleting", "DeletionCompleted", "Deletion completed")},
		{"no deletion", Deleting(false), report.False("Deleting", "NotDeleting", "")},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCount(t *testing.T) {
	machines := []*clusterv1.Machine{
		machine("a", report.True("Ready", "Ready", ""), report.True("Available", "Available", ""), old("x")),
		machine("b", report.True("Ready", "Ready", ""), report.True("UpToDate", "UpToDate", "")), machine("c"),
	}
	if diff := cmp.Diff(Counts{Ready: 2, Available: 1, UpToDate: 1}, Count(machines)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStale(t *testing.T) {
	fresh, slow := deleted(machine("a"), time.Minute), deleted(machine("c"), time.Hour)
	for _, tt := range []struct {
		reason   string
		machines []*clusterv1.Machine
		want     string
	}{
		{"deletions usually take minutes", []*clusterv1.Machine{fresh, machine("b")}, ""},
		{"one takes long", []*clusterv1.Machine{fresh, slow}, "Machine c in deletion since more than 15m"},
		{"two do", []*clusterv1.Machine{slow, deleted(machine("b"), time.Hour)}, "Machines b, c in deletion since more than 15m"},
	} {
		if got := Stale(tt.machines, now); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.reason, got, tt.want)
		}
	}
}
