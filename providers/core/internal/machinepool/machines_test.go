package machinepool

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// stale is a journey whose controller runs only on request and reads from a cache that may be stale. Its pool has no provider IDs.
type stale struct {
	*journey
	api    *fakeapi.Server
	runner *step.Runner[*clusterv1.MachinePool]
}

func newStale(t *testing.T) *stale {
	t.Helper()
	w := &stale{journey: newJourney(t, false)}
	w.reports(poolKind, "p", nil, object.Fields{"infrastructureMachineKind": machineKind.Kind, "replicas": int64(1)})
	w.api = fakeapi.Over(t, w.Client.(client.WithWatch), w.namespace)
	w.restart()
	w.mustReconcile()
	return w
}

// restart replaces the process, and its cache.
func (w *stale) restart() {
	w.api.Cache = w.api.NewCache()
	w.restartController()
}

// restartController replaces the controller with one that remembers nothing.
func (w *stale) restartController() {
	c := newController(w.api.ForController())
	c.visibilityTimeout = 0 // a frozen cache never has the writes
	c.follow = fakeapi.Follower(w, c.Outside, &clusterv1.MachinePoolList{})
	c.follow.Live, c.machineKinds = c.Live, c.follow.Watcher
	w.runner = c.declared().Runner(c.Outside)
}

func requestFor(obj client.Object) ctrl.Request {
	return ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}

func (w *stale) reconcile() error {
	w.Helper()
	_, err := w.runner.Reconcile(w.Context(), requestFor(w.pool))
	return err
}

func (w *stale) mustReconcile() {
	w.Helper()
	testenv.Must(w, w.reconcile())
}

// names returns the Machines of the pool that are not being deleted.
func (w *stale) names() []string {
	w.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(w, w.List(w.Context(), list, client.InNamespace(w.namespace)))
	var out []string
	for i := range list.Items {
		if m := &list.Items[i]; m.DeletionTimestamp.IsZero() && m.Name != "plane" {
			out = append(out, m.Name)
		}
	}
	return out
}

func (w *stale) freeze() {
	w.Helper()
	infraMachines := &unstructured.UnstructuredList{}
	infraMachines.SetGroupVersionKind(machineKind.GroupVersion().WithKind(machineKind.Kind + "List"))
	w.api.Cache.Freeze(&clusterv1.ClusterList{}, &clusterv1.MachinePoolList{}, &clusterv1.MachineList{}, infraMachines)
}

// change changes an object in the API server.
func change[T client.Object](w *stale, obj T, f func(T)) {
	w.Helper()
	testenv.Must(w, w.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
	f(obj)
	testenv.Must(w, w.Update(w.Context(), obj))
}

func (w *stale) infra(name string) *unstructured.Unstructured {
	return w.build.Provided(machineKind, name, nil)
}

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
		p.Spec.Template.Spec.Version = ptr.To("v1.31.9")
	})
	w.infraMachine("w-1")
	w.mustReconcile()
	if names := w.names(); len(names) > 0 {
		t.Fatalf("Machines %q were created from a stale MachinePool", names)
	}
	w.restart()
	w.mustReconcile()
	if version := ptr.Deref(w.machine("w-1").Spec.Version, ""); version != "v1.31.9" {
		t.Errorf("the Machine has version %q", version)
	}
}

func TestDeleteMachines(t *testing.T) {
	gone := func(w *stale) { testenv.Must(w, w.Delete(w.Context(), w.infra("w-1"))) }
	marked := condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, "")
	mark := func(w *stale) {
		m := w.machine("w-1")
		condition.Set(m, marked)
		condition.Stamp(m, nil, now)
		testenv.Must(w, w.Status().Update(w.Context(), m))
	}
	tests := map[string]struct {
		reason string
		before func(w *stale)
		// freeze is whether the cache misses what happens then.
		freeze bool
		after  func(w *stale)
		kept   bool
		// remediated is the condition of the Machine afterwards.
		remediated string
	}{
		"Kept":   {reason: "the infrastructure machine exists", kept: true},
		"Gone":   {reason: "it does not exist any more", before: gone},
		"Hidden": {reason: "it is only missing in the cache", before: func(w *stale) { w.api.Cache.Hide(w.infra("w-1")) }, kept: true},
		"Unlabeled": {reason: "it lost its label", kept: true, before: func(w *stale) {
			change(w, w.infra("w-1"), func(u *unstructured.Unstructured) { u.SetLabels(nil) })
		}},
		"Moved": {reason: "the Cluster is being moved away", before: gone, freeze: true, kept: true,
			after: func(w *stale) { change(w, w.build.Cluster(), object.Paused) }},
		"Marked": {reason: "it is marked for remediation", before: mark, remediated: "False"},
		"Recovered": {reason: "it recovered, and the cache is stale", before: mark, freeze: true, kept: true, remediated: "True", after: func(w *stale) {
			m := w.machine("w-1")
			condition.Set(m, condition.True(clusterv1.MachineOwnerRemediatedCondition))
			condition.Stamp(m, nil, now)
			testenv.Must(w, w.Status().Update(w.Context(), m))
		}},
		"Remediated": {reason: "once it is being deleted, it counts as remediated", remediated: "True", before: func(w *stale) {
			mark(w)
			testenv.Must(w, w.Delete(w.Context(), w.machine("w-1")))
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newStale(t)
			w.infraMachine("w-1")
			w.mustReconcile()
			w.machine("w-1")
			if tc.before != nil {
				tc.before(w)
			}
			if tc.freeze {
				w.freeze()
			}
			if tc.after != nil {
				tc.after(w)
			}
			w.mustReconcile()
			if kept := len(w.names()) == 1; kept != tc.kept {
				t.Errorf("%s: kept = %t, want %t", tc.reason, kept, tc.kept)
			}
			got := ""
			if c := condition.Get(w.machine("w-1"), clusterv1.MachineOwnerRemediatedCondition); c != nil {
				got = string(c.Status)
			}
			if got != tc.remediated {
				t.Errorf("%s: OwnerRemediated is %q, want %q", tc.reason, got, tc.remediated)
			}
		})
	}
}

// TestMachinesInPlace changes the template: metadata and timeouts follow, the version does not, and what users set is kept. A
// Machine that lost its owner reference gets it back.
func TestMachinesInPlace(t *testing.T) {
	w := newStale(t)
	w.infraMachine("w-1")
	w.mustReconcile()
	before := w.machine("w-1")
	change(w, before, func(m *clusterv1.Machine) {
		m.Labels["users"], m.Spec.ProviderID, m.OwnerReferences = "label", ptr.To("test:///w-1"), nil
	})
	change(w, w.pool, func(p *clusterv1.MachinePool) {
		template := &p.Spec.Template
		template.Labels, template.Annotations = map[string]string{"zone": "a"}, map[string]string{"note": "new"}
		template.Spec.Version, template.Spec.NodeDrainTimeout = ptr.To("v1.36.3"), nil
	})
	w.mustReconcile()
	type outcome struct {
		Labels, Annotations map[string]string
		Owners              []metav1.OwnerReference
		Finalizers          []string
		Spec                clusterv1.MachineSpec
	}
	want := outcome{
		Labels:      map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p", "zone": "a", "users": "label"},
		Annotations: map[string]string{"note": "new"}, Finalizers: []string{clusterv1.MachineFinalizer},
		Owners: []metav1.OwnerReference{*metav1.NewControllerRef(w.pool, clusterv1.GroupVersion.WithKind("MachinePool"))},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: ptr.To("v1.35.4"), ProviderID: ptr.To("test:///w-1"),
			InfrastructureRef: corev1.ObjectReference{APIVersion: machineKind.GroupVersion().String(), Kind: machineKind.Kind, Namespace: w.namespace, Name: "w-1"},
		},
	}
	m := w.machine("w-1")
	if diff := cmp.Diff(want, outcome{m.Labels, m.Annotations, m.OwnerReferences, m.Finalizers, m.Spec}); diff != "" || m.UID != before.UID {
		t.Errorf("UID %s, was %s; -want +got:\n%s", m.UID, before.UID, diff)
	}
}
