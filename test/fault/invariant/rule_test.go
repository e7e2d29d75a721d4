package invariant

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// builder builds a Timeline.
type builder struct {
	events history.Timeline
	now    history.State
}

func (s *builder) event(t watch.EventType, o *unstructured.Unstructured) {
	if s.now == nil {
		s.now = history.State{}
	}
	e := history.Event{Revision: uint64(len(s.events) + 1), Type: t, Object: o.DeepCopy()}
	s.events = append(s.events, e)
	s.now[e.Key()] = e.Object
	if t == watch.Deleted {
		delete(s.now, e.Key())
	}
}

func object(kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cluster.x-k8s.io/v1beta1")
	o.SetKind(kind)
	o.SetName(name)
	o.SetUID(types.UID(kind + name))
	o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: scenario.ClusterName})
	if owner != nil {
		yes := true
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}})
	}
	return o
}

func healthy(o *unstructured.Unstructured) *unstructured.Unstructured {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "NodeHealthy", "status": "True"}}, "status", "conditions")
	return o
}

func deleting(o *unstructured.Unstructured) *unstructured.Unstructured {
	now := metav1.Now()
	o = o.DeepCopy()
	o.SetDeletionTimestamp(&now)
	return o
}

// allocated adds a claim, which it returns, and its IPAddress, which has the same address for all claims.
func (s *builder) allocated(name string) *unstructured.Unstructured {
	claim := object("IPAddressClaim", name, nil)
	s.event(watch.Added, claim)
	address := object("IPAddress", name, claim)
	address.Object["spec"] = map[string]any{"address": "10.0.0.1", "poolRef": map[string]any{"name": "p"}}
	s.event(watch.Added, address)
	return claim
}

// dead returns infrastructure that has a machine without power.
func dead(name string) *unstructured.Unstructured {
	infrastructure := object("InMemoryCluster", name, nil)
	infrastructure.SetAnnotations(map[string]string{inmemoryv1.FaultsAnnotation: `{"deadMachines":["w"]}`})
	return infrastructure
}

// TestRules checks that each rule can be violated, independently of the others.
func TestRules(t *testing.T) {
	set := object("MachineSet", "s", nil)
	cluster := object("Cluster", scenario.ClusterName, nil)
	worker := func(i int) *unstructured.Unstructured { return healthy(object("Machine", fmt.Sprint("w", i), set)) }
	limits := scenario.Limits{MaxWorkers: 3, MinWorkers: 2, NewWorkers: 1}
	tests := []struct {
		reason string
		change func(s *builder)
		want   []string
	}{
		{reason: "one of three is replaced", change: func(s *builder) {
			s.event(watch.Modified, deleting(worker(1)))
			s.event(watch.Added, worker(4))
			s.event(watch.Deleted, deleting(worker(1)))
		}},
		{reason: "a fourth Machine is created before one is deleted", want: []string{"never more Machines than replicas and surge"}, change: func(s *builder) {
			s.event(watch.Added, worker(4))
		}},
		{reason: "two Machines are deleted at once", want: []string{"never fewer available Machines than the strategy allows"}, change: func(s *builder) {
			s.event(watch.Modified, deleting(worker(1)))
			s.event(watch.Modified, deleting(worker(2)))
		}},
		{reason: "a replacement is not available yet", want: []string{"never fewer available Machines than the strategy allows"}, change: func(s *builder) {
			s.event(watch.Modified, deleting(worker(1)))
			s.event(watch.Added, object("Machine", "w4", set))
			s.event(watch.Modified, deleting(worker(2)))
		}},
		{reason: "an unnecessary Machine is created", want: []string{"nothing is created twice"}, change: func(s *builder) {
			s.event(watch.Modified, deleting(worker(1)))
			s.event(watch.Added, worker(4))
			s.event(watch.Deleted, worker(4))
			s.event(watch.Added, worker(5))
		}},
		{reason: "a MachineSet is deleted before its Machines", want: []string{"nothing is deleted before its dependents"}, change: func(s *builder) {
			s.event(watch.Deleted, set)
		}},
		{reason: "a Cluster is deleted before its Machines", want: []string{"nothing is deleted before its dependents"}, change: func(s *builder) {
			s.event(watch.Deleted, cluster)
		}},
		{reason: "two claims have an address", want: []string{"no address is allocated to two claims"}, change: func(s *builder) {
			s.allocated("a")
			s.allocated("b")
		}},
		{reason: "a claim has the address of one that is deleted", change: func(s *builder) {
			s.event(watch.Deleted, s.allocated("a"))
			s.allocated("b")
		}},
		{reason: "a Machine is deleted before its infrastructure", want: []string{"nothing is deleted before its dependents"}, change: func(s *builder) {
			s.event(watch.Added, object("InMemoryMachine", "w1", worker(1)))
			s.event(watch.Modified, deleting(worker(1)))
			s.event(watch.Deleted, deleting(worker(1)))
		}},
		{reason: "a Machine is deleted while its cluster does not respond", want: []string{"no Machine is remediated while its cluster does not respond"}, change: func(s *builder) {
			infrastructure := object("InMemoryCluster", "c", nil)
			infrastructure.SetAnnotations(map[string]string{inmemoryv1.FaultsAnnotation: `{"unresponsive":true}`})
			s.event(watch.Added, infrastructure)
			s.event(watch.Modified, deleting(worker(1)))
		}},
		{reason: "a Machine is deleted while two Clusters have machines without power", want: []string{"no Machine is remediated while too many Clusters are unhealthy"}, change: func(s *builder) {
			s.event(watch.Added, dead("c"))
			s.event(watch.Added, dead("second"))
			s.event(watch.Modified, deleting(worker(1)))
		}},
		{reason: "a Machine is deleted when only one has them", change: func(s *builder) {
			s.event(watch.Added, dead("c"))
			s.event(watch.Added, dead("second"))
			s.event(watch.Modified, object("InMemoryCluster", "second", nil))
			s.event(watch.Modified, deleting(worker(1)))
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := &builder{}
			s.event(watch.Added, cluster)
			s.event(watch.Added, set)
			for i := range 3 {
				s.event(watch.Added, worker(i+1))
			}
			start := len(s.events)
			test.change(s)
			var broken []string
			for _, v := range Check(Run{Scenario: scenario.Scenario{Limits: limits, Braked: true}, Samples: []members.Sample{{ClusterID: 1}}, Before: s.events[:start], Timeline: s.events[start:]}) {
				broken = append(broken, v.Rule)
			}
			if diff := cmp.Diff(test.want, broken); diff != "" {
				t.Errorf("violated rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFinalStateIsCompared(t *testing.T) {
	build := func(suffix, owner string) history.State {
		s := &builder{}
		set := object("MachineSet", "c-md-0-"+suffix, nil)
		set.SetUID(types.UID(owner))
		s.event(watch.Added, set)
		m := object("Machine", "c-md-0-"+suffix+"-xxxxx", set)
		m.SetLabels(map[string]string{"machine-template-hash": "123456789-" + suffix})
		s.event(watch.Added, m)
		return s.now
	}
	baseline := Shape(build("bcdfg", "1"))
	if diff := cmp.Diff(baseline, Shape(build("24567", "2"))); diff != "" {
		t.Errorf("generated names and UIDs differ only (-baseline +now):\n%s", diff)
	}
	for name, change := range map[string]func(history.State){
		"another object": func(s history.State) { s[history.Key{Kind: "Secret", Name: "x"}] = object("Secret", "x", nil) },
		"an owner with the same name and another UID": func(s history.State) {
			o := s[history.Key{Kind: "MachineSet", Name: "c-md-0-24567"}].DeepCopy()
			o.SetUID("another")
			s[history.Key{Kind: "MachineSet", Name: "c-md-0-24567"}] = o
		},
		"a finalizer": func(s history.State) {
			o := s[history.Key{Kind: "MachineSet", Name: "c-md-0-24567"}].DeepCopy()
			o.SetFinalizers([]string{"f"})
			s[history.Key{Kind: "MachineSet", Name: "c-md-0-24567"}] = o
		},
	} {
		now := build("24567", "2")
		change(now)
		if cmp.Diff(baseline, Shape(now)) == "" {
			t.Errorf("%s makes no difference", name)
		}
	}
}
