package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

func TestProblemsOfAMachine(t *testing.T) {
	cases := []struct {
		reason string
		edit   func(*machine)
		want   []string
		broken bool
	}{
		{reason: "it is well", edit: func(*machine) {}},
		{
			reason: "without a Node nothing else is worth telling", want: []string{"it has no Node"},
			edit: func(m *machine) { m.Status.NodeRef, m.Status.Conditions = nil, nil },
		},
		{
			reason: "what is not known counts as a problem, but not as broken", want: []string{"EtcdPodHealthy is not known"},
			edit: func(m *machine) { condition.Delete(m, controlplanev1.MachineEtcdPodHealthyCondition) },
		},
		{
			reason: "what fails is told with its reason", want: []string{"EtcdPodHealthy is False (PodMissing)"}, broken: true,
			edit: func(m *machine) {
				condition.Set(m, condition.False(controlplanev1.MachineEtcdPodHealthyCondition, clusterv1.ConditionSeverityError, controlplanev1.PodMissingReason, ""))
			},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			b, _ := three(t)
			m := b.machines[0]
			tc.edit(m)
			got := b.plannedMachine(m)
			if diff := cmp.Diff(tc.want, got.Problems); diff != "" || got.Broken != tc.broken {
				t.Errorf("broken %t, problems (-want +got):\n%s", got.Broken, diff)
			}
		})
	}
}
