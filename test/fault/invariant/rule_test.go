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
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// story builds timelines.
type story struct {
	events history.Timeline
	now    history.State
}

func (s *story) event(t watch.EventType, o *unstructured.Unstructured) {
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

func thing(kind, name string, owner *unstructured.Unstructured) *unstructured.Unstructured {
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

func serving(o *unstructured.Unstructured) *unstructured.Unstructured {
	_ = unstructured.SetNestedSlice(o.Object, []any{map[string]any{"type": "NodeHealthy", "status": "True"}}, "status", "conditions")
	return o
}

func going(o *unstructured.Unstructured) *unstructured.Unstructured {
	now := metav1.Now()
	o = o.DeepCopy()
	o.SetDeletionTimestamp(&now)
	return o
}

// Every rule is broken by something, and not by its neighbours: a rule that nothing can break says nothing.
func TestRules(t *testing.T) {
	set := thing("MachineSet", "s", nil)
	cluster := thing("Cluster", scenario.ClusterName, nil)
	worker := func(i int) *unstructured.Unstructured { return serving(thing("Machine", fmt.Sprint("w", i), set)) }
	limits := scenario.Limits{MostWorkers: 3, LeastWorkers: 2, NewWorkers: 1}
	tests := []struct {
		reason string
		tell   func(s *story)
		want   []string
	}{
		{reason: "one of three is replaced", tell: func(s *story) {
			s.event(watch.Modified, going(worker(1)))
			s.event(watch.Added, worker(4))
			s.event(watch.Deleted, going(worker(1)))
		}},
		{reason: "a fourth comes before one has gone", want: []string{"never more Machines than asked for"}, tell: func(s *story) {
			s.event(watch.Added, worker(4))
		}},
		{reason: "two go at once", want: []string{"never fewer Machines that serve than promised"}, tell: func(s *story) {
			s.event(watch.Modified, going(worker(1)))
			s.event(watch.Modified, going(worker(2)))
		}},
		{reason: "the one that takes the place of another does not serve yet", want: []string{"never fewer Machines that serve than promised"}, tell: func(s *story) {
			s.event(watch.Modified, going(worker(1)))
			s.event(watch.Added, thing("Machine", "w4", set))
			s.event(watch.Modified, going(worker(2)))
		}},
		{reason: "a Machine is made in vain", want: []string{"nothing is made twice"}, tell: func(s *story) {
			s.event(watch.Modified, going(worker(1)))
			s.event(watch.Added, worker(4))
			s.event(watch.Deleted, worker(4))
			s.event(watch.Added, worker(5))
		}},
		{reason: "a MachineSet goes before its Machines", want: []string{"nothing goes before what depends on it"}, tell: func(s *story) {
			s.event(watch.Deleted, set)
		}},
		{reason: "a Cluster goes before its Machines", want: []string{"nothing goes before what depends on it"}, tell: func(s *story) {
			s.event(watch.Deleted, cluster)
		}},
		{reason: "a Machine goes before its infrastructure", want: []string{"nothing goes before what depends on it"}, tell: func(s *story) {
			s.event(watch.Added, thing("InMemoryMachine", "w1", worker(1)))
			s.event(watch.Modified, going(worker(1)))
			s.event(watch.Deleted, going(worker(1)))
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := &story{}
			s.event(watch.Added, cluster)
			s.event(watch.Added, set)
			for i := range 3 {
				s.event(watch.Added, worker(i+1))
			}
			start := len(s.events)
			test.tell(s)
			var broken []string
			for _, v := range Check(Run{Scenario: scenario.Scenario{Limits: limits}, Samples: []members.Sample{{ClusterID: 1}}, Before: s.events[:start], Timeline: s.events[start:]}) {
				broken = append(broken, v.Rule)
			}
			if diff := cmp.Diff(test.want, broken); diff != "" {
				t.Errorf("what is broken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEndIsCompared(t *testing.T) {
	build := func(suffix, owner string) history.State {
		s := &story{}
		set := thing("MachineSet", "c-md-0-"+suffix, nil)
		set.SetUID(types.UID(owner))
		s.event(watch.Added, set)
		m := thing("Machine", "c-md-0-"+suffix+"-xxxxx", set)
		m.SetLabels(map[string]string{"machine-template-hash": "123456789-" + suffix})
		s.event(watch.Added, m)
		return s.now
	}
	calm := Shape(build("bcdfg", "1"))
	if diff := cmp.Diff(calm, Shape(build("24567", "2"))); diff != "" {
		t.Errorf("names and UIDs do not matter (-calm +now):\n%s", diff)
	}
	for name, change := range map[string]func(history.State){
		"an object more": func(s history.State) { s[history.Key{Kind: "Secret", Name: "x"}] = thing("Secret", "x", nil) },
		"an owner that is another one of the same name": func(s history.State) {
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
		if cmp.Diff(calm, Shape(now)) == "" {
			t.Errorf("%s makes no difference", name)
		}
	}
}
