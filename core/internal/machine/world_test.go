package machine

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/internal/contract"
	"sigs.k8s.io/cluster-api/internal/external"
	"sigs.k8s.io/cluster-api/internal/remote"
	"sigs.k8s.io/cluster-api/internal/step"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	id             = "test:///node-1"
	infrastructure = "infrastructure.cluster.x-k8s.io"
	bootstrapping  = "bootstrap.cluster.x-k8s.io"
)

// world is a management and a workload cluster, both fake, around a Controller.
type world struct {
	client.Client
	*Controller
	// workload is the workload cluster's API server; away, if not nil, is why it cannot be reached.
	workload client.Client
	away     error
	writes   []string
	recorder *record.FakeRecorder
	clock    *testclock.FakePassiveClock
	// left is what an attempt to drain leaves, drainFails why there can be none, drained counts them.
	left       remains
	drainFails error
	drained    int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{recorder: record.NewFakeRecorder(20), clock: testclock.NewFakePassiveClock(now)}
	w.Client = w.client(t, []client.Object{crd("GenericMachine", infrastructure), crd("GenericConfig", bootstrapping), crd("GenericControlPlane", "controlplane.cluster.x-k8s.io")}, objects)
	w.workload = w.client(t, nil, nil)
	w.Controller = &Controller{
		Outside:   step.Outside{Client: w.Client, Live: w.Client, Recorder: w.recorder, Clock: w.clock},
		workloads: workloads{w}, drainer: w,
		follow: &reference.Follower{
			Client:    w.Client,
			Reader:    external.Reader{Client: w.Client, Versions: contract.APIVersions{Reader: w.Client}},
			Watcher:   external.NewWatcher(watches{}, nil),
			Kind:      clusterv1.GroupVersion.WithKind(clusterv1.MachineKind),
			Referrers: &clusterv1.MachineList{},
		},
	}
	return w
}

// client is a fake API server whose writes are noted.
func (w *world) client(t *testing.T, first, then []client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithObjects(first...).WithObjects(then...).WithStatusSubresource(&clusterv1.Machine{}).
		WithIndex(&corev1.Node{}, remote.NodeProviderID, remote.Nodes().Indexes[remote.NodeProviderID]).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
				w.note("create", obj)
				return c.Create(ctx, obj, o...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.DeleteOption) error {
				w.note("delete", obj)
				return c.Delete(ctx, obj, o...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, o ...client.PatchOption) error {
				w.note("patch", obj)
				return c.Patch(ctx, obj, p, o...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
				w.note("patch "+sub, obj)
				return c.SubResource(sub).Patch(ctx, obj, p, o...)
			},
		})
	for field, index := range indexes() {
		b = b.WithIndex(&clusterv1.Machine{}, field, index)
	}
	return b.Build()
}

func (w *world) note(what string, obj client.Object) {
	w.writes = append(w.writes, what+" "+obj.GetName())
}

// Drain implements drainer.
func (w *world) Drain(context.Context, *rest.Config, *corev1.Node) (remains, error) {
	w.drained++
	return w.left, w.drainFails
}

// workloads is the world as Workloads.
type workloads struct{ *world }

// Get implements Workloads.
func (w workloads) Get(context.Context, types.NamespacedName) (*remote.Cluster, error) {
	if w.away != nil {
		return nil, w.away
	}
	return &remote.Cluster{Client: w.workload, Config: &rest.Config{}}, nil
}

// watches is a controller that never hears of anything.
type watches struct{}

// Watch implements external.Controller.
func (watches) Watch(source.Source) error { return nil }

func crd(kind, group string) *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{}
	out.Name = contract.CRDName(clusterv1.GroupVersion.WithKind(kind).GroupKind())
	out.Name = out.Name[:len(out.Name)-len(clusterv1.GroupVersion.Group)] + group
	out.Labels = map[string]string{contract.Label(): "v1"}
	return out
}

// provided is a provider's object m-1 with these fields; with owner it is controlled by that Machine.
func provided(kind, group string, owner *clusterv1.Machine, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(fields)}
	if fields == nil {
		u.Object = map[string]any{}
	}
	u.SetAPIVersion(group + "/v1")
	u.SetKind(kind)
	u.SetNamespace("default")
	u.SetName("m-1")
	u.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "c"})
	if owner != nil {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))})
	}
	return u
}

type fields = map[string]any

func infraMachine(f fields) *unstructured.Unstructured {
	return provided("GenericMachine", infrastructure, machine(), f)
}

func config(f fields) *unstructured.Unstructured {
	return provided("GenericConfig", bootstrapping, machine(), f)
}

// machine is a Machine m-1 of cluster c, changed by with.
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
