package machinepool

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDeleteAllMachines(t *testing.T) {
	labeled := func(m *clusterv1.Machine) {
		metav1.SetMetaDataLabel(&m.ObjectMeta, clusterv1.MachinePoolNameLabel, "p")
		m.Finalizers = []string{clusterv1.MachineFinalizer}
	}
	own := func(with ...func(*clusterv1.Machine)) *clusterv1.Machine {
		return object.ControlledBy(build.Machine("m", append(with, labeled)...), pool())
	}
	tests := map[string]struct {
		reason  string
		machine *clusterv1.Machine
		hidden  bool
		waits   bool
		writes  []string
		lists   int
	}{
		"None":     {reason: "the provider deleted all, which the API server confirms", lists: 1},
		"Left":     {reason: "it left one", machine: own(), waits: true, writes: []string{"delete Machine m"}},
		"Hidden":   {reason: "which is not in the cache yet", machine: own(), hidden: true, waits: true, writes: []string{"delete Machine m"}, lists: 1},
		"Deleting": {reason: "which is being deleted", machine: own(object.Deleting), waits: true},
		"Orphan":   {reason: "a Machine without the pool as controller is left alone", machine: build.Machine("m", labeled), lists: 1},
		"Foreign":  {reason: "and so is that of another owner", machine: object.ControlledBy(build.Machine("m", labeled), named("q")), lists: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.machine != nil {
				w = newWorld(t, tc.machine)
			}
			if tc.hidden {
				w.Cache.Hide(tc.machine)
			}
			result, err := w.step(t, "delete-all-machines", &scope{pool: pool(object.Deleting), cluster: build.Cluster()})
			if err != nil || result.Ends() != tc.waits || len(w.LiveReads) != tc.lists {
				t.Errorf("%s: waits for %q, %d live reads, err = %v", tc.reason, result.Waiting(), len(w.LiveReads), err)
			}
			if diff := cmp.Diff(tc.writes, w.Writes); diff != "" {
				t.Errorf("%s: writes (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
