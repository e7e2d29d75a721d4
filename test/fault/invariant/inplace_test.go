package invariant

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// updatingMachine returns control plane Machine name, which is being updated in place or not.
func updatingMachine(name string, updating bool) *unstructured.Unstructured {
	m := object("Machine", name, nil)
	m.SetLabels(map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.ClusterNameLabel: scenario.ClusterName})
	if updating {
		m.SetAnnotations(map[string]string{clusterv1.UpdateInProgressAnnotation: ""})
	}
	return m
}

func TestRulesOfUpdatesInPlace(t *testing.T) {
	from := func(template string) *unstructured.Unstructured {
		infrastructure := object("InMemoryMachine", "a", nil)
		infrastructure.SetAnnotations(map[string]string{clusterv1.TemplateClonedFromNameAnnotation: template})
		return infrastructure
	}
	updated := func(template string) *unstructured.Unstructured {
		record := extension.NewRecord("ns")
		record.Object["data"] = map[string]any{"a.updated-to": template}
		return record
	}
	for _, tc := range []struct {
		reason string
		change func(s *builder)
		want   []string
	}{
		{reason: "it ends when it is complete", change: func(s *builder) {
			s.event(watch.Modified, updatingMachine("a", true))
			s.event(watch.Modified, from("new"))
			s.event(watch.Added, updated("new"))
			s.event(watch.Modified, updatingMachine("a", false))
		}},
		{reason: "it ends before the extension was called", want: []string{"an extension has updated a Machine as desired when its update in place ends"}, change: func(s *builder) {
			s.event(watch.Modified, updatingMachine("a", true))
			s.event(watch.Modified, from("new"))
			s.event(watch.Modified, updatingMachine("a", false))
		}},
		{reason: "it was updated to something else", want: []string{"an extension has updated a Machine as desired when its update in place ends"}, change: func(s *builder) {
			s.event(watch.Modified, updatingMachine("a", true))
			s.event(watch.Added, updated("old"))
			s.event(watch.Modified, from("new"))
			s.event(watch.Modified, updatingMachine("a", false))
		}},
		{reason: "two at the same time", want: []string{"one control plane Machine is updated in place or deleted at a time"}, change: func(s *builder) {
			s.event(watch.Modified, updatingMachine("a", true))
			s.event(watch.Modified, updatingMachine("b", true))
		}},
		{reason: "one is deleted while another one is updated", want: []string{"one control plane Machine is updated in place or deleted at a time"}, change: func(s *builder) {
			s.event(watch.Modified, updatingMachine("a", true))
			s.event(watch.Modified, deleting(updatingMachine("b", false)))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := &builder{}
			s.event(watch.Added, from("old"))
			s.event(watch.Added, updatingMachine("a", false))
			s.event(watch.Added, updatingMachine("b", false))
			start := len(s.events)
			tc.change(s)
			r := Run{Scenario: scenario.Scenario{InPlace: true}, Before: s.events[:start], Timeline: s.events[start:]}
			var broken []string
			for _, rule := range Rules() {
				if rule.Name == "an extension has updated a Machine as desired when its update in place ends" || rule.Name == "one control plane Machine is updated in place or deleted at a time" {
					if len(rule.check(r)) > 0 {
						broken = append(broken, rule.Name)
					}
				}
			}
			if diff := cmp.Diff(tc.want, broken); diff != "" {
				t.Errorf("violated rules (-want +got):\n%s", diff)
			}
		})
	}
}

// worker returns worker name, which has so many controllers, and is being updated in place or not.
func worker(name string, controllers int, updating bool) *unstructured.Unstructured {
	m := updatingMachine(name, updating)
	m.SetLabels(map[string]string{clusterv1.ClusterNameLabel: scenario.ClusterName})
	var owners []metav1.OwnerReference
	for i := range controllers {
		owners = append(owners, metav1.OwnerReference{Kind: "MachineSet", Name: fmt.Sprint(i), Controller: ptr.To(true)})
	}
	m.SetOwnerReferences(append(owners, metav1.OwnerReference{Kind: "Other"}))
	return m
}

func TestRuleOfWorkersThatAreUpdatedInPlace(t *testing.T) {
	for _, tc := range []struct {
		reason string
		events []*unstructured.Unstructured
		want   string
	}{
		{reason: "one after another", events: []*unstructured.Unstructured{worker("a", 1, true), worker("a", 1, false), worker("b", 1, true)}},
		{
			reason: "one belongs to two MachineSets", events: []*unstructured.Unstructured{worker("a", 2, true)}, want: "Machine a has 2 controllers",
		},
		{reason: "and one to none", events: []*unstructured.Unstructured{worker("b", 0, false)}, want: "Machine b has 0 controllers"},
		{
			reason: "both at the same time", events: []*unstructured.Unstructured{worker("a", 1, true), worker("b", 1, true)},
			want: "0 workers are neither being updated in place nor deleted, at least 1 must be",
		},
		{
			reason: "one is deleted while the other one is updated", events: []*unstructured.Unstructured{worker("a", 1, true), deleting(worker("b", 1, false))},
			want: "0 workers are neither being updated in place nor deleted, at least 1 must be",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s := &builder{}
			s.event(watch.Added, worker("a", 1, false))
			s.event(watch.Added, worker("b", 1, false))
			start := len(s.events)
			for _, e := range tc.events {
				s.event(watch.Modified, e)
			}
			r := Run{Scenario: scenario.Scenario{InPlace: true}, Before: s.events[:start], Timeline: s.events[start:]}
			r.Scenario.Limits.MinWorkers = 1
			got := ""
			if broken := workersUpdateInPlace(r); len(broken) > 0 {
				got = broken[0].Detail
			}
			if got != tc.want {
				t.Errorf("violation %q, want %q", got, tc.want)
			}
		})
	}
}
