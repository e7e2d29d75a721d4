package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestDelete(t *testing.T) {
	var build object.Builder
	deleting := func(m *clusterv1.Machine) {
		object.Deleting(m)
		m.Finalizers = []string{clusterv1.MachineFinalizer}
	}
	for name, tc := range map[string]struct {
		reason   string
		orphan   bool
		machines []*clusterv1.Machine
		writes   []string
		waits    bool
	}{
		"None":     {reason: "nothing is left"},
		"Some":     {reason: "they are deleted", machines: []*clusterv1.Machine{build.Machine("a"), build.Machine("b")}, writes: []string{"delete Machine a", "delete Machine b"}, waits: true},
		"Deleting": {reason: "they are deleted once", machines: []*clusterv1.Machine{build.Machine("a", deleting)}, waits: true},
		"Orphaned": {reason: "the garbage collector removes the owner references first", orphan: true, machines: []*clusterv1.Machine{build.Machine("a")}, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			set := build.MachineSet("set", object.Deleting[*clusterv1.MachineSet])
			set.Finalizers = []string{clusterv1.MachineSetFinalizer}
			if tc.orphan {
				set.Finalizers = append(set.Finalizers, metav1.FinalizerOrphanDependents)
			}
			objects := []client.Object{set}
			for _, m := range tc.machines {
				objects = append(objects, m)
			}
			s := fakeapi.New(t, fakeapi.Options{Objects: objects})
			r, err := Delete(t.Context(), s.ForController(), set, tc.machines, "Machine")
			if err != nil || r.Ends() != tc.waits {
				t.Errorf("%s: waits for %q, err = %v", tc.reason, r.Waiting(), err)
			}
			if diff := cmp.Diff(tc.writes, s.Writes); diff != "" {
				t.Errorf("%s: writes, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
