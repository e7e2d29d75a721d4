package cluster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/step/steptest"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	now   = object.Now()
	build object.Builder
	infra = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericCluster"}
	plane = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1", Kind: "GenericControlPlane"}
)

type fields = object.Fields

// world is a fake API server around a Controller.
type world struct {
	*fakeapi.Server
	*Controller
	forgotten []types.NamespacedName
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Server: fakeapi.New(t, fakeapi.Options{
		Objects: append([]client.Object{object.CRD(infra), object.CRD(plane)}, objects...),
		Indexes: []step.Index{{Object: &clusterv1.Cluster{}, Field: reference.Index, Values: references}},
	})}
	clients := w.ForController()
	w.Controller = &Controller{
		Clients: clients, classes: clients.Client,
		forget: func(key types.NamespacedName) { w.forgotten = append(w.forgotten, key) },
		follow: fakeapi.Follower(t, clients, &clusterv1.ClusterList{}),
	}
	w.follow.Live = clients.Live
	return w
}

// step runs one step.
func (w *world) step(t *testing.T, name string, cluster *clusterv1.Cluster) (step.Result, error) {
	t.Helper()
	return steptest.Run(t.Context(), cluster, &scope{Cluster: cluster}, w.declared().Step(name))
}

// all runs all steps.
func (w *world) all(t *testing.T, cluster *clusterv1.Cluster) (step.Result, error) {
	t.Helper()
	steps := w.declared().Steps
	if cluster.DeletionTimestamp != nil {
		steps = w.declared().Deletion
	}
	return steptest.Run(t.Context(), cluster, &scope{Cluster: cluster}, steps...)
}

// provided returns an object of a provider, controlled by Cluster c. A finalizer delays its deletion.
func provided(kind schema.GroupVersionKind, name string, f fields) *unstructured.Unstructured {
	u := object.ControlledBy(build.Provided(kind, name, f), build.Cluster())
	u.SetFinalizers([]string{"provider/x"})
	return u
}

func infraCluster(f fields) *unstructured.Unstructured       { return provided(infra, "c-infra", f) }
func controlPlaneObject(f fields) *unstructured.Unstructured { return provided(plane, "c-plane", f) }

func withInfra(c *clusterv1.Cluster) { c.Spec.InfrastructureRef = *object.Reference(infra, "c-infra") }

func withPlane(c *clusterv1.Cluster) { c.Spec.ControlPlaneRef = *object.Reference(plane, "c-plane") }

func withEndpoint(c *clusterv1.Cluster) {
	c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "own", Port: 1}
}

func withTopology(c *clusterv1.Cluster) {
	c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "class"}}
}

// owned makes an object a direct descendant of Cluster c.
func owned[T client.Object](obj T) T {
	kind := clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)
	obj.SetOwnerReferences([]metav1.OwnerReference{ownership.Reference(build.Cluster(), kind, false)})
	return obj
}

func controlPlaneMachine(name string, with ...func(*clusterv1.Machine)) *clusterv1.Machine {
	return owned(build.Machine(name, append(with, object.ControlPlane)...))
}

var withNode = object.WithNode("node")
