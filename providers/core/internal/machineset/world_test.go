package machineset

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// world is a namespace with a Cluster, templates, and the MachineSet controller. Tests set the status of Machines.
type world struct {
	*testing.T
	client.Client
	namespace string
	build     object.Builder
	writes    *testenv.Requests
}

// newWorld returns a world; without run, the controller does not run.
func newWorld(t *testing.T, run bool) *world {
	t.Helper()
	e := server.Start(t, "providers/core/config/crd", "providers/infrastructure-in-memory/config/crd", "providers/bootstrap-kubeadm/config/crd")
	s := testenv.Scheme(t)
	w := &world{T: t, Client: e.NewClient(t, s), namespace: e.Namespace(t)}
	w.build.Namespace = w.namespace
	if run {
		w.writes = e.Run(t, s, w.namespace, func(mgr ctrl.Manager) error { return Setup(t.Context(), mgr, Options{Concurrency: 2}) })
	}
	w.create(w.build.Cluster())
	w.create(w.build.Template(infrastructure("InMemoryMachineTemplate"), "small"))
	w.create(w.build.Template(bootstrap("KubeadmConfigTemplate"), "join"))
	return w
}

// infrastructure and bootstrap return kinds of providers.
func infrastructure(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1alpha1", Kind: kind}
}

func bootstrap(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "bootstrap.cluster.x-k8s.io", Version: "v1beta1", Kind: kind}
}

func (w *world) create(obj client.Object) {
	w.Helper()
	testenv.Must(w, w.Create(w.Context(), obj))
}

// set creates a MachineSet with the defaults of the webhook.
func (w *world) set(replicas int32) *clusterv1.MachineSet {
	set := w.build.MachineSet("s", func(set *clusterv1.MachineSet) {
		set.Spec.Replicas, set.Spec.Deletion.Order = &replicas, "Random"
		template := &set.Spec.Template
		template.Labels["tier"] = "one"
		template.Spec.Version = "v1.30.0"
		template.Spec.Bootstrap.ConfigRef = *object.Reference(bootstrap("KubeadmConfigTemplate"), "join")
		template.Spec.InfrastructureRef = *object.Reference(infrastructure("InMemoryMachineTemplate"), "small")
	})
	w.create(set)
	return set
}

func (w *world) change(set *clusterv1.MachineSet, change func()) {
	w.Helper()
	w.eventually("the MachineSet is updated", func() error {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		change()
		return w.Update(w.Context(), set)
	})
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	testenv.Eventually(w, what, check)
}

// waitForStatus waits until the MachineSet's status has these numbers of replicas and ready replicas, and is of its generation. It has none
// while its first reports are held back, because not all Machines are ready.
func (w *world) waitForStatus(set *clusterv1.MachineSet, replicas, ready int32) []clusterv1.Machine {
	w.Helper()
	w.eventually(fmt.Sprintf("%d replicas, %d ready", replicas, ready), func() error {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		s, older := set.Status, set.GetV1Beta1Status()
		heldBack := s.ObservedGeneration == 0 && (ready == 0 || ready < replicas)
		observed := s.ObservedGeneration == set.Generation || heldBack
		if ptr.Deref(s.Replicas, 0) != replicas || ptr.Deref(older.ReadyReplicas, 0) != ready || !observed {
			return fmt.Errorf("status = %+v, of v1beta1: %+v", s, older)
		}
		return nil
	})
	return w.machines()
}

// machines lists the Machines that are not being deleted, sorted by name.
func (w *world) machines() []clusterv1.Machine {
	w.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(w, w.List(w.Context(), list, client.InNamespace(w.namespace)))
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
}

// bringUp makes a Machine ready, with a Node.
func (w *world) bringUp(m *clusterv1.Machine) {
	w.Helper()
	before := m.DeepCopy()
	object.Running(time.Now())(m)
	testenv.Must(w, w.Status().Patch(w.Context(), m, client.MergeFrom(before)))
}

// release removes the finalizers of Machines that are being deleted.
func (w *world) release() {
	w.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(w, w.List(w.Context(), list, client.InNamespace(w.namespace)))
	for i := range list.Items {
		m := &list.Items[i]
		if m.DeletionTimestamp.IsZero() {
			continue
		}
		before := m.DeepCopy()
		m.Finalizers = nil
		if err := w.Patch(w.Context(), m, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
	}
}

// get returns an object of a Machine once it exists.
func (w *world) get(ref *clusterv1.ContractVersionedObjectReference) *unstructured.Unstructured {
	w.Helper()
	kind := infrastructure(ref.Kind)
	if ref.APIGroup != kind.Group {
		kind = bootstrap(ref.Kind)
	}
	u := w.build.Provided(kind, ref.Name, nil)
	w.eventually(ref.Kind+" exists", func() error { return w.Get(w.Context(), client.ObjectKeyFromObject(u), u) })
	return u
}

// orphan creates a Machine without owner that the set's selector matches.
func (w *world) orphan(name string, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	w.Helper()
	m := w.build.Machine(name, func(m *clusterv1.Machine) {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		m.Labels[clusterv1.MachineSetNameLabel] = "s"
		m.Spec.Bootstrap.DataSecretName = ptr.To("data")
		m.Spec.InfrastructureRef = *object.Reference(infrastructure("InMemoryMachine"), name)
	})
	for _, f := range change {
		f(m)
	}
	w.create(m)
	return m
}
