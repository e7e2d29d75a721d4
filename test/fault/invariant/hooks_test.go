package invariant

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func TestRulesOfHooks(t *testing.T) {
	hooked, ok := scenario.Named("hooked-upgrade")
	if !ok {
		t.Fatal("no scenario hooked-upgrade")
	}
	called := func(hook string, n int, blocking ...string) *unstructured.Unstructured {
		record := extension.NewRecord("", blocking...)
		_ = unstructured.SetNestedField(record.Object, strconv.Itoa(n), "data", hook+".calls")
		return record
	}
	deployment := func(version string) *unstructured.Unstructured {
		o := object("MachineDeployment", "md", nil)
		_ = unstructured.SetNestedField(o.Object, version, "spec", "template", "spec", "version")
		return o
	}
	const before, after = "v1.29.2", "v1.30.5"
	tests := []struct {
		reason string
		change func(s *builder)
		want   []string
	}{
		{reason: "what is blocked does not change", change: func(s *builder) {
			s.event(watch.Added, called(extension.AfterControlPlaneUpgrade, 1, extension.AfterControlPlaneUpgrade))
			s.event(watch.Added, deployment(before))
			s.event(watch.Modified, called(extension.AfterControlPlaneUpgrade, 2))
			s.event(watch.Modified, deployment(after))
		}},
		{reason: "workers are upgraded before the hook releases them", want: []string{"nothing happens before its lifecycle hook has released it"}, change: func(s *builder) {
			s.event(watch.Added, called(extension.AfterControlPlaneUpgrade, 1, extension.AfterControlPlaneUpgrade))
			s.event(watch.Modified, deployment(after))
			s.event(watch.Modified, called(extension.AfterControlPlaneUpgrade, 2))
		}},
		{reason: "an object is created although the creation is blocked", want: []string{"nothing happens before its lifecycle hook has released it"}, change: func(s *builder) {
			s.event(watch.Added, called("", 0, extension.BeforeClusterCreate))
			s.event(watch.Added, object("InMemoryCluster", scenario.ClusterName, nil))
		}},
		{reason: "only the Cluster is being deleted while its deletion is blocked", change: func(s *builder) {
			s.event(watch.Added, called("", 0, extension.BeforeClusterDelete))
			s.event(watch.Modified, deleting(object("Cluster", scenario.ClusterName, nil)))
		}},
		{reason: "a MachineDeployment is deleted although the deletion is blocked", want: []string{"nothing happens before its lifecycle hook has released it"}, change: func(s *builder) {
			s.event(watch.Added, called("", 0, extension.BeforeClusterDelete))
			s.event(watch.Modified, deleting(deployment(before)))
		}},
		{reason: "the upgrade is announced too early", want: []string{"no lifecycle hook is called before its time"}, change: func(s *builder) {
			s.event(watch.Added, deployment(before))
			s.event(watch.Added, called(extension.AfterClusterUpgrade, 1))
		}},
		{reason: "the upgrade is announced twice", want: []string{"without faults, hooks that cannot block are called once"}, change: func(s *builder) {
			s.event(watch.Added, called(extension.AfterClusterUpgrade, 1))
			s.event(watch.Modified, called(extension.AfterClusterUpgrade, 2))
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			s := &builder{}
			test.change(s)
			var got []string
			for _, v := range Check(Run{Scenario: hooked, Timeline: s.events, Unwatched: true}) {
				if v.Rule != "never fewer available Machines than the strategy allows" { // There are no Machines.
					got = append(got, v.Rule)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
