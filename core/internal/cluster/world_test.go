package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/testworld"
	"sigs.k8s.io/cluster-api/provider/reference"
	"sigs.k8s.io/cluster-api/provider/step"
)

var (
	now   = testworld.Now()
	infra = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericCluster"}
	plane = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1", Kind: "GenericControlPlane"}
)

type fields = testworld.Fields

// world is a fake API server around a Controller.
type world struct {
	*testworld.Fake
	*Controller
	forgotten []types.NamespacedName
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Fake: testworld.NewFake(t, func(b *fake.ClientBuilder) {
		b.WithObjects(testworld.CRD(infra), testworld.CRD(plane)).WithObjects(objects...).
			WithStatusSubresource(&clusterv1.Cluster{}).WithIndex(&clusterv1.Cluster{}, reference.Index, references)
	})}
	w.Controller = &Controller{
		Outside: w.API(),
		forget:  func(key types.NamespacedName) { w.forgotten = append(w.forgotten, key) },
		follow:  w.Follower(clusterv1.ClusterKind, &clusterv1.ClusterList{}),
	}
	return w
}

// step runs one step.
func (w *world) step(t *testing.T, name string, cluster *clusterv1.Cluster) (step.Result, error) {
	t.Helper()
	return step.Try(t.Context(), cluster, &scope{Cluster: cluster}, w.declared().Step(name))
}

// all runs all steps.
func (w *world) all(t *testing.T, cluster *clusterv1.Cluster) (step.Result, error) {
	t.Helper()
	steps := w.declared().Steps
	if cluster.DeletionTimestamp != nil {
		steps = w.declared().Deletion
	}
	return step.Try(t.Context(), cluster, &scope{Cluster: cluster}, steps...)
}

// provided returns an object of a provider, controlled by Cluster c. A finalizer delays its deletion.
func provided(kind schema.GroupVersionKind, name string, f fields) *unstructured.Unstructured {
	u := testworld.ProviderObject(kind, name, f)
	u.SetFinalizers([]string{"provider/x"})
	testworld.SetController(u, clusterv1.ClusterKind, cluster())
	return u
}

func infraCluster(f fields) *unstructured.Unstructured       { return provided(infra, "c-infra", f) }
func controlPlaneObject(f fields) *unstructured.Unstructured { return provided(plane, "c-plane", f) }

// cluster returns Cluster c, changed by with.
func cluster(with ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-c", Generation: 1}}
	for _, f := range with {
		f(c)
	}
	return c
}

func withInfra(c *clusterv1.Cluster) {
	c.Spec.InfrastructureRef = &corev1.ObjectReference{APIVersion: infra.GroupVersion().String(), Kind: infra.Kind, Name: "c-infra"}
}

func withPlane(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneRef = &corev1.ObjectReference{APIVersion: plane.GroupVersion().String(), Kind: plane.Kind, Name: "c-plane"}
}

func withEndpoint(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "own", Port: 1}
}

func deleting(c *clusterv1.Cluster) {
	c.DeletionTimestamp = &metav1.Time{Time: now}
	c.Finalizers = []string{clusterv1.ClusterFinalizer}
}

func withTopology(c *clusterv1.Cluster) { c.Spec.Topology = &clusterv1.Topology{Class: "class"} }

// child makes an object a descendant of Cluster c, a direct one if owned.
func child[T client.Object](obj T, name string, owned bool) T {
	obj.SetNamespace("default")
	obj.SetName(name)
	obj.SetUID(types.UID("uid-" + name))
	obj.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	if owned {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: "c", UID: "uid-c"}})
	}
	return obj
}

func controlPlaneMachine(name string, with ...func(*clusterv1.Machine)) *clusterv1.Machine {
	m := child(&clusterv1.Machine{}, name, true)
	m.Labels[clusterv1.MachineControlPlaneLabel] = ""
	for _, f := range with {
		f(m)
	}
	return m
}

func withNode(m *clusterv1.Machine) { m.Status.NodeRef = &corev1.ObjectReference{Name: "node"} }
