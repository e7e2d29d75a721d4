package machine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestDeleteReferenced(t *testing.T) {
	held := infraMachine(nil)
	held.SetFinalizers([]string{"provider/x"})
	foreign := provided("GenericMachine", infrastructure, machine(named("m-2")), nil)
	state := func(reason, message string) clusterv1.Condition {
		return condition.False(clusterv1.InfrastructureReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo, reason, "%s", message)
	}
	cases := map[string]struct {
		reason string
		infra  client.Object
		want   clusterv1.Condition
		writes []string
		waits  bool
	}{
		"Exists":  {"it is deleted, and the Machine waits", held, state(clusterv1.DeletingV1Beta1Reason, "Waiting for GenericMachine m-1 to be deleted"), []string{"delete GenericMachine m-1"}, true},
		"Gone":    {"deletion continues", nil, state(clusterv1.DeletedV1Beta1Reason, ""), nil, false},
		"Foreign": {"it belongs to another Machine", foreign, state(clusterv1.DeletedV1Beta1Reason, ""), nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.infra != nil {
				objects = append(objects, tc.infra)
			}
			w, m := newWorld(t, objects...), machine(deleting)
			for range 2 {
				r, err := w.step(t, "delete-infrastructure", &scope{machine: m, cluster: build.Cluster()})
				if err != nil || r.Ends() != tc.waits {
					t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
				}
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(clusterv1.Conditions{tc.want}, m.GetV1Beta1Conditions()); diff != "" {
				t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
