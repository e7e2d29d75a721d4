package machine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/testworld"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

var now = testworld.Now()

const (
	id             = "test:///node-1"
	infrastructure = "infrastructure.cluster.x-k8s.io"
	bootstrapping  = "bootstrap.cluster.x-k8s.io"
)

// world is a Controller with a fake management cluster and a fake workload cluster.
type world struct {
	*testworld.Fake
	*Controller
	// workload is a client of the workload cluster; away, if not nil, is the error of connections to it.
	workload client.Client
	away     error
	// left is the result of attempts to drain, drainFails their error, and drained their number.
	left       remainingPods
	drainFails error
	drained    int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Fake: testworld.NewFake(t, func(b *fake.ClientBuilder) {
		for _, kind := range []schema.GroupVersionKind{kindOf("GenericMachine", infrastructure), kindOf("GenericConfig", bootstrapping), kindOf("GenericControlPlane", "controlplane.cluster.x-k8s.io")} {
			b.WithObjects(testworld.CRD(kind))
		}
		b.WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{})
		for _, index := range indexes() {
			b.WithIndex(index.Object, index.Field, index.Values)
		}
	})}
	w.workload = w.NewClient(t, func(b *fake.ClientBuilder) {
		b.WithIndex(&corev1.Node{}, remote.NodeProviderID, remote.Nodes().Indexes[remote.NodeProviderID])
	})
	w.Controller = &Controller{
		Outside: w.API(), workloads: workloads{w}, drainer: w,
		follow: w.Follower(clusterv1.MachineKind, &clusterv1.MachineList{}),
	}
	return w
}

// step runs one step.
func (w *world) step(t *testing.T, name string, s *scope) (step.Result, error) {
	t.Helper()
	return step.Try(t.Context(), s.machine, s, w.declared().Step(name))
}

// Drain implements drainer.
func (w *world) Drain(context.Context, *remote.Cluster, *corev1.Node) (remainingPods, error) {
	w.drained++
	return w.left, w.drainFails
}

// workloads implements Workloads with the world.
type workloads struct{ *world }

// Get implements Workloads.
func (w workloads) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if w.away != nil {
		return nil, w.away
	}
	return &remote.Cluster{Client: w.workload, Config: &rest.Config{}}, nil
}

func kindOf(kind, group string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// provided returns an object m-1 of a provider, controlled by owner unless that is nil.
func provided(kind, group string, owner *clusterv1.Machine, f fields) *unstructured.Unstructured {
	u := testworld.ProviderObject(kindOf(kind, group), "m-1", f)
	if owner != nil {
		testworld.SetController(u, clusterv1.MachineKind, owner)
	}
	return u
}

type fields = testworld.Fields

func infraMachine(f fields) *unstructured.Unstructured {
	return provided("GenericMachine", infrastructure, machine(), f)
}

func config(f fields) *unstructured.Unstructured {
	return provided("GenericConfig", bootstrapping, machine(), f)
}

// machine returns Machine m-1 of Cluster c, changed by with.
func machine(with ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "m-1", UID: "uid-m-1", Generation: 1,
			Labels: map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "set"},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName:       "c",
			InfrastructureRef: corev1.ObjectReference{APIVersion: infrastructure + "/v1", Kind: "GenericMachine", Name: "m-1"},
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: bootstrapping + "/v1", Kind: "GenericConfig", Name: "m-1"}},
		},
	}
	for _, f := range with {
		f(m)
	}
	return m
}

func withProviderID(m *clusterv1.Machine) { m.Spec.ProviderID = ptr.To(id) }

func withNode(m *clusterv1.Machine) {
	withProviderID(m)
	m.Status.NodeRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "node-1"}
}

func deleting(m *clusterv1.Machine) {
	m.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Second)}
	m.Finalizers = []string{clusterv1.MachineFinalizer}
}

func controlPlane(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" }

func annotated(key, value string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[key] = value
	}
}

func named(name string) func(*clusterv1.Machine) {
	return func(m *clusterv1.Machine) { m.Name, m.UID = name, types.UID("uid-"+name) }
}

func cluster(with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-c"}}
	for _, f := range with {
		f(c)
	}
	return c
}

func node(with ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1", UID: "uid-node-1"}, Spec: corev1.NodeSpec{ProviderID: id}}
	for _, f := range with {
		f(n)
	}
	return n
}
