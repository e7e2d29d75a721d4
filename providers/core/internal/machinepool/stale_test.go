package machinepool

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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
	c.follow = fakeapi.Follower(w, c.Clients, &clusterv1.MachinePoolList{})
	c.follow.Live, c.machineKinds = c.Live, c.follow.Watcher
	w.runner = c.declared().Runner(c.Clients)
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
