package report

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	ready     = Reasons{"Ready", "NotReady", "ReadyUnknown"}
	scalingUp = Reasons{"ScalingUp", "NotScalingUp", "ScalingUpUnknown"}
)

func lines(l ...string) string { return strings.Join(l, "\n") }

func TestSummary(t *testing.T) {
	good := Source{Condition: True("InfrastructureReady", "Ready", "")}
	notDeleting := Source{Condition: False("Deleting", "NotDeleting", ""), Negative: true}
	for _, tt := range []struct {
		reason  string
		sources []Source
		want    metav1.Condition
	}{
		{"no issue", []Source{notDeleting, good}, True("Ready", "Ready", "")},
		{"issues and unknown, in order of the sources", []Source{
			{Condition: True("Deleting", "Draining", "drains"), Negative: true},
			{Condition: Unknown("NodeHealthy", "ConnectionDown", "")}, good,
			{Condition: False("UpToDate", "NotUpToDate", "old")}},
			False("Ready", "NotReady", lines("* Deleting: drains", "* NodeHealthy: ConnectionDown", "* UpToDate: old"))},
		{"unknown alone", []Source{good, {Condition: Missing("NodeHealthy")}},
			Unknown("Ready", "ReadyUnknown", "* NodeHealthy: Condition NodeHealthy not yet reported")},
		{"infos have messages if nothing else has", []Source{good,
			{Condition: False("TopologyReconciled", "ClusterUpgrading", "upgrading\n  * KubeadmControlPlane"), Info: true}},
			True("Ready", "Ready", lines("* TopologyReconciled:", "  * upgrading", "      * KubeadmControlPlane"))},
		{"lists are nested", []Source{{Condition: False("WorkersAvailable", "NotAvailable", "* MachineDeployment a: too few")}},
			False("Ready", "NotReady", lines("* WorkersAvailable:", "  * MachineDeployment a: too few"))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Summary("Ready", ready, tt.sources...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAggregate(t *testing.T) {
	child := func(kind, name string, c metav1.Condition) Child {
		return Child{Kind: kind, Name: name, Source: Source{Condition: c}}
	}
	bad := func(name, message string) Child {
		return child("Machine", name, False("Ready", "NotReady", "%s", message))
	}
	unknown := func(name string) Child { return child("Machine", name, Missing("Ready")) }
	controlPlane := bad("z", "cp")
	controlPlane.ControlPlane = true
	for _, tt := range []struct {
		reason   string
		children []Child
		want     metav1.Condition
	}{
		{"no issue", []Child{child("Machine", "a", True("Ready", "Ready", ""))}, True("MachinesReady", "Ready", "")},
		{"objects with the same message share a line", []Child{bad("c", "x"), bad("a", "x"), bad("b", "x"), bad("d", "x"), bad("e", "x")},
			False("MachinesReady", "NotReady", "* Machines a, b, c, ... (2 more): x")},
		{"issues before unknown, control planes first, the largest group first",
			[]Child{unknown("u"), bad("a", "x"), bad("b", "y"), bad("c", "y"), controlPlane},
			False("MachinesReady", "NotReady", lines("* Machine z: cp", "* Machines b, c: y", "* Machine a: x", "And 1 Machine with status unknown"))},
		{"other groups are counted", []Child{bad("a", "1"), bad("b", "2"), bad("c", "3"), bad("d", "4"), bad("e", "5"), unknown("f")},
			False("MachinesReady", "NotReady", lines("* Machine a: 1", "* Machine b: 2", "* Machine c: 3", "And 2 Machines with other issues",
				"And 1 Machine with status unknown"))},
		{"kinds are sorted", []Child{bad("a", "x"), child("KubeadmControlPlane", "k", False("Ready", "NotReady", ""))},
			False("MachinesReady", "NotReady", lines("* KubeadmControlPlane k: NotReady", "* Machine a: x"))},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Aggregate("MachinesReady", ready, false, tt.children)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAggregateOfNegativeConditions(t *testing.T) {
	child := func(name string, c metav1.Condition) Child {
		return Child{Kind: "MachineDeployment", Name: name, Source: Source{Condition: c, Negative: true}}
	}
	up := child("a", True("ScalingUp", "ScalingUp", "Scaling up from 1 to 3 replicas is blocked because:\n* etcd"))
	idle := child("b", False("ScalingUp", "NotScalingUp", ""))
	want := True("ScalingUp", "ScalingUp", lines("* MachineDeployment a:", "  * Scaling up from 1 to 3 replicas is blocked because:", "    * etcd"))
	if diff := cmp.Diff(want, Aggregate("ScalingUp", scalingUp, true, []Child{up, idle})); diff != "" {
		t.Errorf("one scales up (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(False("ScalingUp", "NotScalingUp", ""), Aggregate("ScalingUp", scalingUp, true, []Child{idle})); diff != "" {
		t.Errorf("none scales up (-want +got):\n%s", diff)
	}
}
