package controlplane

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

func TestDeleteMachines(t *testing.T) {
	write := func(name string, change func(*clusterv1.Machine)) func(*testing.T, *kcptest.World) {
		return func(t *testing.T, w *kcptest.World) {
			t.Helper()
			w.Update(t, name, change)
		}
	}
	cases := []struct {
		reason    string
		objects   []client.Object
		orphaning bool // the control plane is deleted with propagation policy Orphan
		noPools   bool // the kind MachinePool is not enabled
		change    func(*testing.T, *kcptest.World)
		want      outcome
	}{
		{reason: "without Machines there is nothing to check"},
		{
			reason: "all are deleted at once, because etcd no longer needs a quorum", objects: []client.Object{own("a"), own("b")},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Reads: 2},
		},
		{
			reason: "one read is enough if there are no MachinePools", objects: []client.Object{own("a")}, noPools: true,
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Reads: 1},
		},
		{
			reason: "the garbage collector is orphaning the Machines, so they must not be deleted", objects: []client.Object{own("a")}, orphaning: true,
			want: outcome{Waiting: garbageCollector, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a"}, Held: []string{"a"}},
		},
		{
			reason: "while all are being deleted without our hook, nothing is read", objects: []client.Object{own("a", beingDeleted, unhooked)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason},
		},
		{
			reason: "a Machine that a user has deleted is released", objects: []client.Object{own("a", beingDeleted)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Reads: 2},
		},
		{
			reason: "an orphan is released, but not deleted", objects: []client.Object{kcptest.Machine("o", ""), own("a", beingDeleted, unhooked)},
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"o"}, Reads: 2},
		},
		{
			reason: "a worker that the cache does not show needs the API server", objects: []client.Object{own("a")}, change: create(worker("w", "c")),
			want: outcome{Waiting: workersToAppear, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a", "w"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "so does a MachinePool, even without the label of the Cluster", objects: []client.Object{own("a")}, change: create(pool("c")),
			want: outcome{Waiting: workersToAppear, Reason: clusterv1.DeletingV1Beta1Reason, Staying: []string{"a"}, Held: []string{"a"}, Reads: 2},
		},
		{
			reason: "a MachinePool of another Cluster does not", objects: []client.Object{own("a")}, change: create(pool("d")),
			want: outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Reads: 2},
		},
		{
			reason:  "a Machine that was written since it was read is kept, because it may have another controller; the others are deleted",
			objects: []client.Object{own("a", unhooked), own("b")},
			change:  write("a", func(m *clusterv1.Machine) { m.OwnerReferences[0].UID = "another" }),
			want:    outcome{Waiting: gone, Reason: clusterv1.DeletingV1Beta1Reason, Stale: true, Staying: []string{"a"}, Reads: 2},
		},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDeleted(t, tc.objects...)
			if tc.orphaning {
				w.KCP.Finalizers = append(w.KCP.Finalizers, metav1.FinalizerOrphanDependents)
			}
			if tc.change != nil {
				tc.change(t, w)
			}
			if diff := cmp.Diff(tc.want, try(t, w, deleter(w, !tc.noPools).deleteMachines)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
