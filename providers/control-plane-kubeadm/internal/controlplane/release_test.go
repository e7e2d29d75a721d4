package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

func TestRelease(t *testing.T) {
	cases := []struct {
		reason  string
		objects []client.Object
		noPools bool
		want    outcome
	}{
		{reason: "nothing is left", want: outcome{Released: true, Reads: 2}},
		{reason: "nothing is left, and the kind MachinePool is not enabled", noPools: true, objects: []client.Object{pool("c")}, want: outcome{Released: true, Reads: 1}},
		{
			reason: "a Machine of the control plane that the cache does not show", objects: []client.Object{own("a")},
			want: outcome{Waiting: remaining, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "one that is being deleted still has its infrastructure", objects: []client.Object{own("a", beingDeleted)},
			want: outcome{Waiting: remaining, Held: []string{"a"}, Reads: 2},
		},
		{reason: "a worker", objects: []client.Object{worker("w", "c")}, want: outcome{Waiting: remaining, Staying: []string{"w"}, Reads: 2}},
		{reason: "a MachinePool without the label of the Cluster", objects: []client.Object{pool("c")}, want: outcome{Waiting: remaining, Reads: 2}},
		{reason: "workers of another Cluster do not matter", objects: []client.Object{worker("w", "d"), pool("d")}, want: outcome{Staying: []string{"w"}, Released: true, Reads: 2}},
		{
			reason: "a control plane Machine with another controller does not matter, and keeps its hook", objects: []client.Object{kcptest.Machine("f", "another")},
			want: outcome{Staying: []string{"f"}, Held: []string{"f"}, Released: true, Reads: 2},
		},
		{
			reason: "an orphan is released: no controller would remove the hook later", objects: []client.Object{kcptest.Machine("o", "")},
			want: outcome{Staying: []string{"o"}, Released: true, Reads: 2},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDeleted(t, tc.objects...)
			w.Machines = nil // The step runs when the cache shows none.
			if diff := cmp.Diff(tc.want, try(t, w, deleter(w, !tc.noPools).release)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
