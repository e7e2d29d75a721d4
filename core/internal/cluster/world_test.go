package cluster

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/internal/contract"
	"sigs.k8s.io/cluster-api/internal/external"
	"sigs.k8s.io/cluster-api/internal/step"
)

var (
	now   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	infra = schema.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1", Kind: "GenericCluster"}
	plane = schema.GroupVersionKind{Group: "controlplane.cluster.x-k8s.io", Version: "v1", Kind: "GenericControlPlane"}
)

type fields = map[string]any

// world is a fake API server around a Controller.
type world struct {
	client.Client
	*Controller
	writes    []string
	recorder  *record.FakeRecorder
	forgotten []types.NamespacedName
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{recorder: record.NewFakeRecorder(20)}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd(infra), crd(plane)).WithObjects(objects...).
		WithStatusSubresource(&clusterv1.Cluster{}).WithIndex(&clusterv1.Cluster{}, reference.Index, references).
		WithInterceptorFuncs(w.noting()).Build()
	w.Controller = &Controller{
		Outside: step.Outside{Client: w.Client, Live: w.Client, Recorder: w.recorder, Clock: testclock.NewFakePassiveClock(now)},
		forget:  func(key types.NamespacedName) { w.forgotten = append(w.forgotten, key) },
		follow: &reference.Follower{
			Client:    w.Client,
			Reader:    external.Reader{Client: w.Client, Versions: contract.APIVersions{Reader: w.Client}},
			Watcher:   external.NewWatcher(watches{}, nil),
			Kind:      clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind),
			Referrers: &clusterv1.ClusterList{},
		},
	}
	return w
}

func (w *world) noting() interceptor.Funcs {
	note := func(what string, obj client.Object) { w.writes = append(w.writes, what+" "+obj.GetName()) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			note("create", obj)
			return c.Create(ctx, obj, o...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
			note("delete", obj)
			return c.Delete(ctx, obj, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
			note("patch", obj)
			return c.Patch(ctx, obj, p, o...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
			note("patch "+sub, obj)
			return c.SubResource(sub).Patch(ctx, obj, p, o...)
		},
	}
}

// watches is a controller that never hears of anything.
type watches struct{}

// Watch implements external.Controller.
func (watches) Watch(source.Source) error { return nil }

func crd(kind schema.GroupVersionKind) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = contract.CRDName(kind.GroupKind())
	out.Labels = map[string]string{contract.Label(): kind.Version}
	return out
}

// provided is a provider's object of Cluster c with these fields, and a finalizer so that deletion takes its time.
func provided(kind schema.GroupVersionKind, name string, f fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(f)}
	if f == nil {
		u.Object = map[string]any{}
	}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetFinalizers([]string{"provider/x"})
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(cluster(), clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))})
	return u
}

func infraCluster(f fields) *unstructured.Unstructured       { return provided(infra, "c-infra", f) }
func controlPlaneObject(f fields) *unstructured.Unstructured { return provided(plane, "c-plane", f) }

// cluster is a Cluster c, changed by with.
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

// child makes an object a descendant of Cluster c; owned makes it a direct one.
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
