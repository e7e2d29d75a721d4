package kcptest

import (
	"cmp"
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/external"
	"sigs.k8s.io/cluster-api/provider/step"
)

// World is a control plane as a reconcile reads it, on a fake API server that records requests.
type World struct {
	step.Outside
	*snapshot.ControlPlane
	External external.Reader

	// Writes are the requests that created or patched objects, such as "create m".
	Writes []string
	// LiveKCP is the control plane in the API server, if it differs from the cache.
	LiveKCP *controlplanev1.KubeadmControlPlane
	// LiveCluster is the Cluster in the API server, if it differs from the cache.
	LiveCluster *clusterv1.Cluster
	// StatusWrites counts writes of status.
	StatusWrites int
	// LiveReads counts reads past the cache.
	LiveReads int
}

// Now returns the time of a World.
func Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Scheme returns a scheme with all kinds that tests use.
func Scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, apiextensionsv1.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// New returns the control plane ns/cp of Cluster ns/c without Machines. These objects are in the API server.
func New(t *testing.T, objects ...client.Object) *World {
	t.Helper()
	w := &World{ControlPlane: &snapshot.ControlPlane{
		KCP: &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}},
		Cluster: &clusterv1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "c-uid"},
			Spec:       clusterv1.ClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 1}},
		},
	}}
	w.KCP.Spec.Version = "v1.30.0"
	c := fake.NewClientBuilder().WithScheme(Scheme(t)).WithObjects(objects...).WithStatusSubresource(&clusterv1.Machine{}, &controlplanev1.KubeadmControlPlane{}).
		WithIndex(&clusterv1.Machine{}, snapshot.ClusterIndex, snapshot.ByCluster).WithIndex(&clusterv1.MachinePool{}, snapshot.ClusterIndex, snapshot.ByCluster).
		WithInterceptorFuncs(w.record()).Build()
	w.Outside = step.Outside{Client: c, Live: w.live(c), Clock: testclock.NewFakePassiveClock(Now())}
	w.External = external.Reader{Client: c, Versions: contract.APIVersions{Reader: c}}
	return w
}

// record records writes.
func (w *World) record() interceptor.Funcs {
	note := func(verb string, obj client.Object) { w.Writes = append(w.Writes, verb+" "+obj.GetName()) }
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			note("create", obj)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			note("patch", obj)
			return c.Patch(ctx, obj, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.StatusWrites++
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}
}

// live returns a reader that reads past the cache, and counts its reads.
func (w *World) live(c client.WithWatch) client.Reader {
	return interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			w.LiveReads++
			switch o := obj.(type) {
			case *controlplanev1.KubeadmControlPlane:
				cmp.Or(w.LiveKCP, w.KCP).DeepCopyInto(o)
				return nil
			case *clusterv1.Cluster:
				cmp.Or(w.LiveCluster, w.Cluster).DeepCopyInto(o)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			w.LiveReads++
			return c.List(ctx, list, opts...)
		},
	})
}

// Machine returns a control plane Machine with our pre-terminate hook. Without an owner, it is orphaned.
func Machine(name string, owner types.UID) *clusterv1.Machine {
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Finalizers: []string{clusterv1.MachineFinalizer},
			Labels:      map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineControlPlaneLabel: ""},
			Annotations: map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""},
		},
		Spec: clusterv1.MachineSpec{ClusterName: "c"},
	}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane", Name: "cp", UID: owner, Controller: ptr.To(true),
		}}
	}
	return m
}

// Three returns an initialized control plane with three healthy Machines a, b and c and one desired replica, and its workload
// cluster.
func Three(t *testing.T) (*World, *Workload) {
	t.Helper()
	f := NewWorkload(client.ObjectKey{Namespace: "ns", Name: "c"})
	var objects []client.Object
	for _, name := range []string{"a", "b", "c"} {
		f.Boot(name)
		m := Machine(name, "cp-uid")
		m.Spec.ClusterName = ""
		m.Status.NodeRef = &corev1.ObjectReference{Name: name}
		for _, kind := range []clusterv1.ConditionType{
			controlplanev1.MachineAPIServerPodHealthyCondition, controlplanev1.MachineControllerManagerPodHealthyCondition,
			controlplanev1.MachineSchedulerPodHealthyCondition, controlplanev1.MachineEtcdPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition,
		} {
			condition.Set(m, condition.True(kind))
		}
		objects = append(objects, m)
	}
	w := New(t, objects...)
	w.KCP.Spec.Replicas, w.KCP.Status.Initialized = ptr.To[int32](1), true
	w.Reload(t)
	return w, f
}

// Reload reads the Machines as the next reconcile does.
func (w *World) Reload(t *testing.T) {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	w.Machines = nil
	for i := range list.Items {
		w.Machines = append(w.Machines, &snapshot.Machine{Machine: &list.Items[i]})
	}
}

// Update changes a Machine in the API server.
func (w *World) Update(t *testing.T, name string, change func(*clusterv1.Machine)) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		t.Fatal(err)
	}
	change(m)
	if err := w.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// UpdateStatus changes the status of a Machine in the API server.
func (w *World) UpdateStatus(t *testing.T, name string, change func(*clusterv1.Machine)) {
	t.Helper()
	m := &clusterv1.Machine{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m); err != nil {
		t.Fatal(err)
	}
	change(m)
	if err := w.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// Annotate replaces the annotations of a Machine.
func (w *World) Annotate(t *testing.T, name string, annotations map[string]string) {
	t.Helper()
	w.Update(t, name, func(m *clusterv1.Machine) { m.Annotations = annotations })
}

// Drained sets the condition of Machines that are being deleted and wait for their pre-terminate hooks.
func (w *World) Drained(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		w.UpdateStatus(t, name, func(m *clusterv1.Machine) {
			condition.Set(m, condition.False(clusterv1.PreTerminateDeleteHookSucceededCondition, clusterv1.ConditionSeverityInfo, clusterv1.WaitingExternalHookReason, ""))
		})
	}
}

// Unhealthy sets the conditions of a Machine that a MachineHealthCheck sets if it is unhealthy.
func (w *World) Unhealthy(t *testing.T, name string) {
	t.Helper()
	w.UpdateStatus(t, name, func(m *clusterv1.Machine) {
		for _, kind := range []clusterv1.ConditionType{clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineOwnerRemediatedCondition} {
			condition.Set(m, condition.False(kind, clusterv1.ConditionSeverityWarning, "", ""))
		}
	})
}

// Deleted deletes Machines, as a user does.
func (w *World) Deleted(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := w.Client.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// Held returns the names of the Machines in the API server that have our hook.
func (w *World) Held(t *testing.T) []string {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		if _, held := list.Items[i].Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]; held {
			names = append(names, list.Items[i].Name)
		}
	}
	return names
}

// Count returns the number of Machines in the API server that are not being deleted, and of all Machines.
func (w *World) Count(t *testing.T) (staying, all int) {
	t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for _, m := range list.Items {
		if m.DeletionTimestamp == nil {
			staying++
		}
	}
	return staying, len(list.Items)
}
