package machinepool

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func TestMachineOnlyForCurrentInfraMachines(t *testing.T) {
	tests := map[string]struct {
		reason string
		// before is in the cache, and meanwhile is what the cache misses.
		before, meanwhile func(w *stale)
		want              []string
		err               string
	}{
		"Unchanged": {reason: "the cache is up to date", meanwhile: func(*stale) {}, want: []string{"w-1"}},
		"Gone":      {reason: "it was deleted", meanwhile: func(w *stale) { testenv.Must(w, w.Delete(w.Context(), w.infra("w-1"))) }},
		"Deleting": {reason: "it is being deleted", meanwhile: func(w *stale) {
			change(w, w.infra("w-1"), func(u *unstructured.Unstructured) { u.SetFinalizers([]string{"provider/x"}) })
			testenv.Must(w, w.Delete(w.Context(), w.infra("w-1")))
		}},
		"Left": {reason: "it left the pool", meanwhile: func(w *stale) {
			change(w, w.infra("w-1"), func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}},
		"Pool":       {reason: "the pool is being deleted", meanwhile: func(w *stale) { testenv.Must(w, w.Delete(w.Context(), w.pool)) }},
		"PoolPaused": {reason: "the pool is paused", meanwhile: func(w *stale) { change(w, w.pool.DeepCopy(), object.PausedByAnnotation) }},
		"Paused": {reason: "the Cluster is paused, and may be moved away", meanwhile: func(w *stale) {
			change(w, w.build.Cluster(), object.Paused)
		}},
		"Annotated": {reason: "the annotation of the Cluster pauses only the Cluster itself", before: func(w *stale) {
			change(w, w.build.Cluster(), object.PausedByAnnotation)
		}, meanwhile: func(*stale) {}, want: []string{"w-1"}},
		"Taken": {reason: "a user's Machine has the name", meanwhile: func(w *stale) { w.create(w.standalone("w-1")) }, want: []string{"w-1"},
			err: "GenericMachine w-1 has label cluster.x-k8s.io/pool-name of MachinePool p, but Machine w-1 does not belong to the pool: remove the label, or delete the Machine"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			w.infraMachine("w-1")
			if tc.before != nil {
				tc.before(w)
			}
			w.freeze()
			tc.meanwhile(w)
			err := w.reconcile()
			if (err != nil) != (tc.err != "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s: err = %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, w.names()); diff != "" {
				t.Errorf("%s: Machines (-want +got):\n%s", tc.reason, diff)
			}
			if tc.err == "" {
				return
			}
			m := w.machine("w-1")
			if diff := cmp.Diff(w.standalone("w-1").Spec, m.Spec); diff != "" || len(m.OwnerReferences) > 0 {
				t.Errorf("%s: owners %v, spec -want +got:\n%s", tc.reason, m.OwnerReferences, diff)
			}
		})
	}
}

// standalone returns a Machine of a user.
func (w *stale) standalone(name string) *clusterv1.Machine {
	return w.build.Machine(name, func(m *clusterv1.Machine) {
		m.Spec.InfrastructureRef, m.Spec.Bootstrap.DataSecretName = *object.Reference(machineKind, "mine"), ptr.To("mine")
	})
}

// TestInfraMachineOfAnotherMachine has the label of the pool on an infrastructure machine that a Machine of another name controls.
func TestInfraMachineOfAnotherMachine(t *testing.T) {
	w := newStale(t)
	m := w.standalone("mine")
	w.create(m)
	w.infraMachine("w-1")
	change(w, w.infra("w-1"), func(u *unstructured.Unstructured) { object.ControlledBy(u, m) })
	want := "GenericMachine w-1 has label cluster.x-k8s.io/pool-name of MachinePool p, but is controlled by Machine mine: remove the label"
	if err := w.reconcile(); err == nil || err.Error() != want {
		t.Errorf("err = %v, want %q", err, want)
	}
	if diff := cmp.Diff([]string{"mine"}, w.names()); diff != "" {
		t.Errorf("Machines (-want +got):\n%s", diff)
	}
}

// TestOnceWhereverItIsKilled kills the process after each write, and starts another one: each infrastructure machine has one Machine.
func TestOnceWhereverItIsKilled(t *testing.T) {
	killed := errors.New("killed")
	for n, reached := 1, true; reached; n++ {
		reached = false
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w := newStale(t)
			w.infraMachine("w-1")
			w.infraMachine("w-2")
			writes := 0
			w.api.After = func(r fakeapi.Request, err error) error {
				if r.IsWrite() {
					writes++
				}
				if writes >= n && r.IsWrite() {
					reached = true
					return killed
				}
				return err
			}
			if err := w.reconcile(); err != nil && !reached {
				t.Fatal(err)
			}
			w.api.After = nil
			w.restart()
			for range 2 {
				w.mustReconcile()
			}
			if diff := cmp.Diff([]string{"w-1", "w-2"}, w.names()); diff != "" {
				t.Errorf("Machines (-want +got):\n%s", diff)
			}
			w.api.Writes, w.api.LiveReads = nil, nil
			w.mustReconcile()
			if len(w.api.Writes)+len(w.api.LiveReads) > 0 {
				t.Errorf("requests without a reason: %q, %q", w.api.Writes, w.api.LiveReads)
			}
		})
	}
}

// TestStaleCacheOfMachines has a Machine that is not in the cache yet: it is not created again, and nothing is reported.
func TestStaleCacheOfMachines(t *testing.T) {
	w := newStale(t)
	w.infraMachine("w-1")
	w.freeze()
	for range 3 {
		w.mustReconcile()
		w.restartController()
	}
	if diff := cmp.Diff([]string{"w-1"}, w.names()); diff != "" {
		t.Errorf("Machines (-want +got):\n%s", diff)
	}
	if m := w.machine("w-1"); m.Generation != 1 {
		t.Errorf("the Machine was written again: generation %d", m.Generation)
	}
}

// TestStaleCacheOfThePool waits for the cache to have the version of the pool before it creates a Machine: one of the previous version
// would be replaced at once.
func TestStaleCacheOfThePool(t *testing.T) {
	w := newStale(t)
	w.api.Cache.Freeze(&clusterv1.MachinePoolList{})
	change(w, &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "p"}}, func(p *clusterv1.MachinePool) {
		p.Spec.Template.Spec.Version = "v1.31.9"
	})
	w.infraMachine("w-1")
	w.mustReconcile()
	if names := w.names(); len(names) > 0 {
		t.Fatalf("Machines %q were created from a stale MachinePool", names)
	}
	w.restart()
	w.mustReconcile()
	if version := w.machine("w-1").Spec.Version; version != "v1.31.9" {
		t.Errorf("the Machine has version %q", version)
	}
}
