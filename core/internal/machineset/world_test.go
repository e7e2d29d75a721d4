package machineset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/testworld"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/testenv"
)

var server testenv.Server

func TestMain(m *testing.M) { server.Main(m) }

// world is a namespace with a Cluster, templates, and the MachineSet controller. Tests set the status of Machines.
type world struct {
	*testing.T
	client.Client
	namespace string
	writes    *testworld.Requests
}

func newWorld(t *testing.T) *world {
	t.Helper()
	e := server.Start(t, "config/core/crd", "config/infrastructure-in-memory/crd", "config/bootstrap-kubeadm/crd")
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), clusterv1.AddToScheme(s), apiextensionsv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, Client: e.NewClient(t, s), namespace: e.Namespace(t)}
	w.writes = testworld.Run(t, e.Config, s, w.namespace, func(mgr ctrl.Manager) error {
		return Setup(t.Context(), mgr, Options{Concurrency: 2})
	})
	w.create(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "c"}})
	w.create(w.object(infrastructure, "InMemoryMachineTemplate", "small"))
	w.create(w.object(bootstrap, "KubeadmConfigTemplate", "join"))
	return w
}

const (
	infrastructure = "infrastructure.cluster.x-k8s.io/v1alpha1"
	bootstrap      = "bootstrap.cluster.x-k8s.io/v1beta1"
)

func (w *world) object(version, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{}}}}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(w.namespace)
	u.SetName(name)
	return u
}

func (w *world) create(obj client.Object) {
	w.Helper()
	if err := w.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

// set creates a MachineSet with the defaults of the webhook.
func (w *world) set(replicas int32) *clusterv1.MachineSet {
	labels := map[string]string{clusterv1.MachineSetNameLabel: "s"}
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "s", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineSetSpec{
			ClusterName: "c", Replicas: &replicas, DeletePolicy: "Random", Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{
				ObjectMeta: clusterv1.ObjectMeta{Labels: map[string]string{clusterv1.MachineSetNameLabel: "s", "tier": "one"}},
				Spec: clusterv1.MachineSpec{
					ClusterName: "c", Version: ptr.To("v1.30.0"),
					Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: bootstrap, Kind: "KubeadmConfigTemplate", Name: "join"}},
					InfrastructureRef: corev1.ObjectReference{APIVersion: infrastructure, Kind: "InMemoryMachineTemplate", Name: "small"},
				},
			},
		},
	}
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

// waitForStatus waits until the MachineSet's status has these numbers of replicas and ready replicas.
func (w *world) waitForStatus(set *clusterv1.MachineSet, replicas, ready int32) []clusterv1.Machine {
	w.Helper()
	w.eventually(fmt.Sprintf("%d replicas, %d ready", replicas, ready), func() error {
		if err := w.Get(w.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if s := set.Status; s.Replicas != replicas || s.ReadyReplicas != ready || s.ObservedGeneration != set.Generation {
			return fmt.Errorf("status = %+v", s)
		}
		return nil
	})
	return w.machines()
}

// machines lists the Machines that are not being deleted, sorted by name.
func (w *world) machines() []clusterv1.Machine {
	w.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() })
}

// bringUp makes a Machine ready, with a Node.
func (w *world) bringUp(m *clusterv1.Machine) {
	w.Helper()
	before := m.DeepCopy()
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name}
	m.Status.InfrastructureReady = true
	condition.Set(m, condition.True(clusterv1.MachineNodeHealthyCondition))
	condition.Set(m, condition.True(clusterv1.ReadyCondition))
	condition.Stamp(m, nil, time.Now())
	if err := w.Status().Patch(w.Context(), m, client.MergeFrom(before)); err != nil {
		w.Fatal(err)
	}
}

// release removes the finalizers of Machines that are being deleted.
func (w *world) release() {
	w.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.Fatal(err)
	}
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

func (w *world) get(ref *corev1.ObjectReference) *unstructured.Unstructured {
	w.Helper()
	u := w.object(ref.APIVersion, ref.Kind, ref.Name)
	w.eventually(ref.Kind+" exists", func() error { return w.Get(w.Context(), client.ObjectKeyFromObject(u), u) })
	return u
}
