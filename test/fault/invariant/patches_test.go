package invariant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"sigs.k8s.io/cluster-api/test/fault/extension"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func TestRulesOfPatches(t *testing.T) {
	patched, ok := scenario.Named("patched-change")
	if !ok {
		t.Fatal("no scenario patched-change")
	}
	in := func(phase extension.Phase) *unstructured.Unstructured {
		record := extension.NewRecord("")
		_ = unstructured.SetNestedField(record.Object, string(phase), "data", "phases")
		return record
	}
	controlPlane := func(generation int64, command string) *unstructured.Unstructured {
		o := object("KubeadmControlPlane", "c", nil)
		o.SetGeneration(generation)
		_ = unstructured.SetNestedStringSlice(o.Object, []string{command}, "spec", "kubeadmConfigSpec", "preKubeadmCommands")
		return o
	}
	const held = "nothing changes while an extension of patches is away, contradicts itself or rejects the topology"
	tests := []struct {
		reason        string
		before, after func(s *builder)
		want          []string
	}{
		{reason: "a status changes while the extension is away", before: func(s *builder) {
			s.event(watch.Added, controlPlane(1, "echo hello"))
		}, after: func(s *builder) {
			s.event(watch.Added, in(extension.Away))
			s.event(watch.Modified, controlPlane(1, "echo hello"))
			s.event(watch.Modified, in(extension.Answers))
			s.event(watch.Modified, controlPlane(2, "echo goodbye"))
		}},
		{reason: "a control plane changes while the extension is away", want: []string{held}, after: func(s *builder) {
			s.event(watch.Added, controlPlane(1, "echo hello"))
			s.event(watch.Added, in(extension.Away))
			s.event(watch.Modified, controlPlane(2, "echo goodbye"))
		}},
		{reason: "a MachineHealthCheck is created while the topology is rejected", want: []string{held}, after: func(s *builder) {
			s.event(watch.Added, in(extension.Rejects))
			check := object("MachineHealthCheck", "m", nil)
			check.SetGeneration(1)
			s.event(watch.Added, check)
		}},
		{reason: "a patch is applied that was not confirmed", want: []string{"templates have only patches that were confirmed"}, after: func(s *builder) {
			s.event(watch.Added, controlPlane(1, "echo goodbye1"))
		}},
		{reason: "an ignored failure drops the patches", want: []string{"templates have only patches that were confirmed"}, after: func(s *builder) {
			s.event(watch.Added, object("KubeadmControlPlane", "c", nil))
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			before, after := &builder{}, &builder{}
			if test.before != nil {
				test.before(before)
			}
			test.after(after)
			var got []string
			for _, v := range Check(Run{Scenario: patched, Before: before.events, Timeline: after.events, Unwatched: true}) {
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
