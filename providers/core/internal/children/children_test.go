package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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

func TestPolicies(t *testing.T) {
	var build object.Builder
	const finalizer = clusterv1.MachineSetFinalizer
	for name, tc := range map[string]struct {
		reason string
		policy Policy
		has    bool
		isNew  bool
		want   bool
	}{
		"New":       {"new objects get it", Add, false, true, true},
		"Existing":  {"existing ones do not: this would be a write for each", Add, false, false, false},
		"Kept":      {"it stays", Add, true, false, true},
		"Removed":   {"Cluster API v1.7 would not remove it", Remove, true, false, false},
		"Unknown":   {"the stored version is unknown", Leave, true, false, true},
		"NewOlder":  {"new objects do not get it either", Remove, false, true, false},
		"NewUnsure": {"nor if it is unknown", Leave, false, true, false},
	} {
		set := build.MachineSet("set")
		if tc.has {
			set.Finalizers = []string{finalizer}
		}
		tc.policy.Apply(set, finalizer, tc.isNew)
		if got := controllerutil.ContainsFinalizer(set, finalizer); got != tc.want {
			t.Errorf("%s: %s: has the finalizer: %t", name, tc.reason, got)
		}
	}
}
