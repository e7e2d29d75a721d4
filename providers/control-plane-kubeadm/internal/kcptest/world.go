package kcptest

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// World is a control plane as a reconcile reads it.
type World struct {
	step.Clients
	*snapshot.ControlPlane
	External external.Reader
	// API has the Machines and all other objects, except for KCP and Cluster, which only live reads return.
	API *fakeapi.Server
	// LiveKCP and LiveCluster are what live reads return: KCP and Cluster, until Diverge.
	LiveKCP     *controlplanev1.KubeadmControlPlane
	LiveCluster *clusterv1.Cluster
}

// Build returns the builder of objects of Cluster ns/c.
func Build() object.Builder { return object.Builder{Namespace: "ns"} }

// New returns the control plane ns/cp of Cluster ns/c without Machines. These objects are in the API server.
func New(t *testing.T, objects ...client.Object) *World {
	t.Helper()
	api := fakeapi.New(t, fakeapi.Options{
		Kinds:   []func(*runtime.Scheme) error{bootstrapv1.AddToScheme, controlplanev1.AddToScheme},
		Objects: objects,
		Indexes: []step.Index{
			{Object: &clusterv1.Machine{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster},
			{Object: &clusterv1.MachinePool{}, Field: snapshot.ClusterIndex, Values: snapshot.ByCluster},
		},
	})
	w := &World{API: api, Clients: api.ForController(), ControlPlane: &snapshot.ControlPlane{
		KCP: &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cp", UID: "cp-uid"}},
		Cluster: Build().Cluster(func(c *clusterv1.Cluster) {
			c.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "h", Port: 1}
		}),
	}}
	w.KCP.Spec.Version = "v1.30.0"
	w.External = fakeapi.External(w.Clients)
	w.LiveKCP, w.LiveCluster = w.KCP, w.Cluster
	api.Live.Show(w.LiveKCP, w.LiveCluster)
	return w
}

// Diverge makes live reads return copies of KCP and Cluster from now on, which tests change.
func (w *World) Diverge() {
	w.LiveKCP, w.LiveCluster = w.KCP.DeepCopy(), w.Cluster.DeepCopy()
	w.API.Live.Show(w.LiveKCP, w.LiveCluster)
}

// StatusWrites returns the number of writes of status.
func (w *World) StatusWrites() int {
	n := 0
	for _, write := range w.API.Writes {
		if strings.Contains(write, "/status ") {
			n++
		}
	}
	return n
}

// Machine returns a control plane Machine with our pre-terminate hook. Without an owner, it is orphaned.
func Machine(name string, owner types.UID) *clusterv1.Machine {
	return Build().Machine(name, object.ControlPlane, func(m *clusterv1.Machine) {
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		m.Annotations = map[string]string{controlplanev1.PreTerminateHookCleanupAnnotation: ""}
		if owner != "" {
			m.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: controlplanev1.GroupVersion.String(), Kind: "KubeadmControlPlane", Name: "cp", UID: owner, Controller: ptr.To(true),
			}}
		}
	})
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
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: name}
		for _, kind := range []clusterv1.ConditionType{
			controlplanev1.MachineAPIServerPodHealthyV1Beta1Condition, controlplanev1.MachineControllerManagerPodHealthyV1Beta1Condition,
			controlplanev1.MachineSchedulerPodHealthyV1Beta1Condition,
			controlplanev1.MachineEtcdPodHealthyV1Beta1Condition, controlplanev1.MachineEtcdMemberHealthyV1Beta1Condition,
		} {
			condition.Set(m, condition.True(kind))
		}
		objects = append(objects, m)
	}
	w := New(t, objects...)
	w.KCP.Spec.Replicas, w.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To[int32](1), ptr.To(true)
	w.Reload(t)
	return w, f
}

// Reload reads the Machines as the next reconcile does.
func (w *World) Reload(t *testing.T) {
	t.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.API.List(t.Context(), list))
	w.Machines = nil
	for i := range list.Items {
		w.Machines = append(w.Machines, &snapshot.Machine{Machine: &list.Items[i]})
	}
}

// Update changes a Machine in the API server.
func (w *World) Update(t *testing.T, name string, change func(*clusterv1.Machine)) {
	t.Helper()
	m := &clusterv1.Machine{}
	testenv.Must(t, w.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m))
	change(m)
	testenv.Must(t, w.API.Update(t.Context(), m))
}

// UpdateStatus changes the status of a Machine in the API server.
func (w *World) UpdateStatus(t *testing.T, name string, change func(*clusterv1.Machine)) {
	t.Helper()
	m := &clusterv1.Machine{}
	testenv.Must(t, w.API.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, m))
	change(m)
	testenv.Must(t, w.API.Status().Update(t.Context(), m))
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
			condition.Set(m, condition.False(clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition, clusterv1.ConditionSeverityInfo,
				clusterv1.WaitingExternalHookV1Beta1Reason, ""))
		})
	}
}

// Unhealthy sets the conditions of a Machine that a MachineHealthCheck sets if it is unhealthy.
func (w *World) Unhealthy(t *testing.T, name string) {
	t.Helper()
	w.UpdateStatus(t, name, func(m *clusterv1.Machine) {
		for _, kind := range []clusterv1.ConditionType{
			clusterv1.MachineHealthCheckSucceededV1Beta1Condition, clusterv1.MachineOwnerRemediatedV1Beta1Condition,
		} {
			condition.Set(m, condition.False(kind, clusterv1.ConditionSeverityWarning, "", ""))
		}
	})
}

// Deleted deletes Machines, as a user does.
func (w *World) Deleted(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		testenv.Must(t, w.API.Delete(t.Context(), &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}))
	}
}

// Held returns the names of the Machines in the API server that have our hook.
func (w *World) Held(t *testing.T) []string {
	t.Helper()
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.API.List(t.Context(), list))
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
	testenv.Must(t, w.API.List(t.Context(), list))
	for _, m := range list.Items {
		if m.DeletionTimestamp == nil {
			staying++
		}
	}
	return staying, len(list.Items)
}
