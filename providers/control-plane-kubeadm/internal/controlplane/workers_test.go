package controlplane

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

func TestCachedWorkers(t *testing.T) {
	elsewhere := worker("w", "c")
	elsewhere.Namespace = "other"
	cases := []struct {
		reason  string
		pools   bool
		objects []client.Object
		want    int
	}{
		{reason: "a Cluster without workers"},
		{reason: "control plane Machines are no workers", objects: []client.Object{own("a"), kcptest.Machine("b", "another")}},
		{reason: "Machines of MachineSets and standalone Machines are", objects: []client.Object{worker("w", "c"), worker("x", "c")}, want: 2},
		{reason: "a worker that is being deleted still needs the API server", objects: []client.Object{func() client.Object {
			w := worker("w", "c")
			beingDeleted(w)
			return w
		}()}, want: 1},
		{reason: "workers of other Clusters do not matter", pools: true, objects: []client.Object{worker("w", "d"), elsewhere, pool("d")}},
		{reason: "a MachinePool is a worker", pools: true, objects: []client.Object{worker("w", "c"), pool("c")}, want: 2},
		{reason: "MachinePools are not listed if the kind is not enabled", objects: []client.Object{pool("c")}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			w := newDeleted(t, tc.objects...)
			got, err := deleter(w, tc.pools).cachedWorkers(t.Context(), w.ControlPlane)
			if err != nil || got != tc.want || len(w.API.LiveReads) != 0 {
				t.Errorf("%d workers, want %d; %d live reads, want none; error %v", got, tc.want, len(w.API.LiveReads), err)
			}
		})
	}
}
