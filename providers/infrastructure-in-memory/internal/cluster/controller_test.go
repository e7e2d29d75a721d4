package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

var (
	infra = types.NamespacedName{Namespace: "default", Name: "infra"}
	key   = types.NamespacedName{Namespace: "default", Name: "test"}
)

type world struct {
	*fakeapi.Server
	lab    *lab.Lab
	runner *step.Runner[step.Object]
	gone   func(context.Context, event.DeleteEvent, workqueue.TypedRateLimitingInterface[reconcile.Request])
	// ports is the range of the next process. Zero: the default.
	ports lab.Ports
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{Server: fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{inmemoryv1.AddToScheme}, Objects: objects})}
	w.restart(t)
	t.Cleanup(func() {
		if err := w.lab.Server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// restart starts a new process: the simulated cloud is empty, the management cluster is unchanged.
func (w *world) restart(t *testing.T) {
	t.Helper()
	if w.lab != nil {
		testenv.Must(t, w.lab.Server.Close())
	}
	w.lab = &lab.Lab{Cloud: cloud.New(cloud.Options{}), Server: apiserver.New(apiserver.Options{}), Host: "127.0.0.1", Ports: w.ports,
		Claims: Claims(w.Client, kinds.InMemory())}
	c := &Controller{Clients: w.ForController(), kinds: kinds.InMemory(), lab: w.lab}
	w.gone = c.gone
	w.runner = c.declared().Runner(c.Clients)
}

func (w *world) reconcile(t *testing.T) {
	t.Helper()
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: infra}); err != nil {
		t.Fatal(err)
	}
}

func (w *world) read(t *testing.T) *inmemoryv1.InMemoryCluster {
	t.Helper()
	obj := &inmemoryv1.InMemoryCluster{}
	testenv.Must(t, w.Get(t.Context(), infra, obj))
	return obj
}

func addressOf(obj *inmemoryv1.InMemoryCluster) string {
	return net.JoinHostPort(obj.Spec.ControlPlaneEndpoint.Host, strconv.Itoa(obj.Spec.ControlPlaneEndpoint.Port))
}

func newCluster() *clusterv1.Cluster { return object.Builder{ClusterName: "test"}.Cluster() }

func newInfra() *inmemoryv1.InMemoryCluster {
	return object.ControlledBy(&inmemoryv1.InMemoryCluster{ObjectMeta: object.Builder{ClusterName: "test"}.Meta("InMemoryCluster",
		"infra")}, newCluster())
}

func TestOpen(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.reconcile(t)
	obj := w.read(t)
	if !obj.Status.Ready || !condition.IsTrue(obj, clusterv1.ReadyV1Beta1Condition) || !slices.Contains(obj.Finalizers,
		inmemoryv1.ClusterFinalizer) || obj.Annotations[inmemoryv1.ListenerAnnotationName] != "default/test" {
		t.Errorf("want it ready, with finalizer and listener: %+v %+v", obj.ObjectMeta, obj.Status)
	}
	if got := w.lab.Server.Addresses()[key]; got != addressOf(obj) {
		t.Errorf("it listens at %q, want %q as in spec", got, addressOf(obj))
	}
	w.restart(t)
	w.reconcile(t)
	if diff := cmp.Diff(obj, w.read(t)); diff != "" {
		t.Errorf("a restart changes nothing, -want +got:\n%s", diff)
	}
	if got := w.lab.Server.Addresses()[key]; got != addressOf(obj) {
		t.Errorf("after a restart it listens at %q, want %q", got, addressOf(obj))
	}
}

// What runs does not depend on whether the Cluster is paused.
func TestPausedClusterIsOpenedAfterRestart(t *testing.T) {
	pause := func(w *world, paused bool) {
		cluster := newCluster()
		testenv.Must(t, w.Get(t.Context(), key, cluster))
		cluster.Spec.Paused = ptr.To(paused)
		testenv.Must(t, w.Update(t.Context(), cluster))
	}
	w := newWorld(t, newCluster(), newInfra())
	pause(w, true)
	w.reconcile(t)
	if _, open := w.lab.Server.Endpoint(key); open {
		t.Error("a cluster that was never opened must stay closed while it is paused")
	}
	pause(w, false)
	w.reconcile(t)
	pause(w, true)
	obj := w.read(t)
	w.restart(t)
	w.reconcile(t)
	if got := w.lab.Server.Addresses()[key]; got != addressOf(obj) {
		t.Errorf("after a restart it listens at %q, want %q", got, addressOf(obj))
	}
	if diff := cmp.Diff(obj, w.read(t)); diff != "" {
		t.Errorf("a restart changes nothing, -want +got:\n%s", diff)
	}
	obj = w.read(t)
	obj.Annotations[inmemoryv1.FaultsAnnotation] = "invalid"
	testenv.Must(t, w.Update(t.Context(), obj))
	w.reconcile(t) // It would fail if it were reconciled.
}

func TestReplacementListensAtTheClusterEndpoint(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.reconcile(t)
	first := w.read(t)
	testenv.Must(t, w.Delete(t.Context(), first))
	w.reconcile(t)
	cluster := newCluster()
	testenv.Must(t, w.Get(t.Context(), key, cluster))
	cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: first.Spec.ControlPlaneEndpoint.Host,
		Port: int32(first.Spec.ControlPlaneEndpoint.Port)}
	testenv.Must(t, w.Update(t.Context(), cluster))
	second := newInfra()
	second.UID = "another"
	testenv.Must(t, w.Create(t.Context(), second))
	w.restart(t)
	w.reconcile(t)
	if got, want := addressOf(w.read(t)), addressOf(first); got != want {
		t.Errorf("it listens at %s, want the Cluster's endpoint %s", got, want)
	}
}

func TestFaults(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.reconcile(t)
	group, _ := w.lab.Cloud.Group(key)
	for _, test := range []struct {
		reason, text string
		want         faults.Faults
		fails        bool
	}{
		{"slow and unreliable", `{"latency": "1s", "errorRate": 0.5}`,
			faults.Faults{Latency: metav1.Duration{Duration: time.Second}, ErrorRate: 0.5}, false},
		{"faults that are removed are repaired", `{"unresponsive": true}`, faults.Faults{Unresponsive: true}, false},
		{"invalid faults change nothing", `{"unresponsive": "a bit"}`, faults.Faults{Unresponsive: true}, true},
		{"a dead machine", `{"deadMachines": ["m"]}`, faults.Faults{DeadMachines: []string{"m"}}, false},
		{"no faults", "", faults.Faults{}, false},
	} {
		obj := w.read(t)
		obj.Annotations[inmemoryv1.FaultsAnnotation] = test.text
		if test.text == "" {
			delete(obj.Annotations, inmemoryv1.FaultsAnnotation)
		}
		testenv.Must(t, w.Update(t.Context(), obj))
		_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: infra})
		if (err != nil) != test.fails {
			t.Errorf("%s: %v", test.reason, err)
		}
		if diff := cmp.Diff(test.want, group.Faults(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, -want +got:\n%s", test.reason, diff)
		}
	}
}

// TestTenantsCannotChooseEndpoints checks that the manager does not listen at any endpoint that a tenant writes.
func TestTenantsCannotChooseEndpoints(t *testing.T) {
	theirs := newInfra()
	theirs.Name, theirs.UID, theirs.Spec.ControlPlaneEndpoint.Port = "older", "older", 20011
	theirs.CreationTimestamp = metav1.NewTime(time.Unix(1, 0))
	for _, test := range []struct {
		reason, host string
		port         int
		message      string
		terminal     bool
	}{
		{"all addresses", "0.0.0.0", 20010, "0.0.0.0", true},
		{"the port of webhooks", "127.0.0.1", 9443, "9443", true},
		{"the port of another cluster that is not open yet", "127.0.0.1", 20011, "port 20011", false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			mine := newInfra()
			mine.CreationTimestamp = metav1.NewTime(time.Unix(2, 0))
			mine.Spec.ControlPlaneEndpoint = inmemoryv1.APIEndpoint{Host: test.host, Port: test.port}
			w := newWorld(t, newCluster(), mine, theirs)
			_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: infra})
			if err == nil || errors.Is(err, reconcile.TerminalError(nil)) != test.terminal {
				t.Errorf("want terminal = %v, got %v", test.terminal, err)
			}
			obj := w.read(t)
			ready := condition.Get(obj, clusterv1.ReadyV1Beta1Condition)
			if obj.Status.Ready || ready == nil || ready.Reason != inmemoryv1.EndpointFailedReason || !strings.Contains(ready.Message,
				test.message) {
				t.Errorf("Ready does not contain the reason: %+v", ready)
			}
			if len(w.lab.Server.Addresses()) != 0 {
				t.Errorf("it listens at %v", w.lab.Server.Addresses())
			}
		})
	}
}

// TestPortsOfOthersAfterRestart checks that after a restart, an InMemoryCluster that is reconciled first does not get another's port.
func TestPortsOfOthersAfterRestart(t *testing.T) {
	cases := map[string]struct {
		reason string
		// before runs before the restart. victim reconciles the victim, and returns its port.
		before func(t *testing.T, w *world, evil *inmemoryv1.InMemoryCluster, victim func() int)
	}{
		"Rewritten": {
			"an older object with an open cluster sets the victim's port",
			func(t *testing.T, w *world, evil *inmemoryv1.InMemoryCluster, victim func() int) {
				port := victim()
				w.reconcileOf(t, evil)
				evil.Spec.ControlPlaneEndpoint.Port = port
				testenv.Must(t, w.Update(t.Context(), evil))
			},
		},
		"Written": {
			"an older object without an open cluster sets the victim's port",
			func(t *testing.T, w *world, evil *inmemoryv1.InMemoryCluster, victim func() int) {
				testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(evil), evil))
				evil.Spec.ControlPlaneEndpoint.Port = victim()
				testenv.Must(t, w.Update(t.Context(), evil))
			},
		},
		"Unwritten": {
			"a free port is not one that is claimed",
			func(_ *testing.T, w *world, _ *inmemoryv1.InMemoryCluster, victim func() int) {
				port := victim()
				w.ports = lab.Ports{First: port, Last: port}
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			mine, evil := newInfra(), newInfra()
			mine.CreationTimestamp = metav1.NewTime(time.Unix(2, 0))
			evil.Namespace, evil.UID, evil.CreationTimestamp = "evil", "evil-uid", metav1.NewTime(time.Unix(1, 0))
			theirs := newCluster()
			theirs.Namespace = "evil"
			w := newWorld(t, newCluster(), theirs, mine, evil)
			c.before(t, w, evil, func() int {
				w.reconcile(t)
				return w.read(t).Spec.ControlPlaneEndpoint.Port
			})
			before := w.lab.Server.Addresses()[key]

			w.restart(t)
			_, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(evil)})
			if err == nil {
				t.Fatalf("%s: the port was opened", c.reason)
			}
			testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(evil), evil))
			if ready := condition.Get(evil, clusterv1.ReadyV1Beta1Condition); ready == nil || strings.Contains(ready.Message+err.Error(),
				key.Namespace+"/") {
				t.Errorf("%s: Ready = %v and err = %v, want both to have the reason, without the owner of the port", c.reason, ready, err)
			}
			w.reconcile(t)
			if got := w.lab.Server.Addresses()[key]; got != before {
				t.Errorf("%s: the other cluster listens at %q, want %q", c.reason, got, before)
			}
		})
	}
}

// TestPortThatIsNotRecorded kills the manager after it wrote the endpoint, and before it recorded the port.
func TestPortThatIsNotRecorded(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.reconcile(t)
	before := w.read(t)
	moved := before.DeepCopy()
	moved.Status.Port = before.Spec.ControlPlaneEndpoint.Port - 1
	testenv.Must(t, w.Status().Update(t.Context(), moved))
	w.restart(t)
	w.reconcile(t)
	if diff := cmp.Diff(before.Status, w.read(t).Status); diff != "" || w.lab.Server.Addresses()[key] != addressOf(before) {
		t.Errorf("it listens at %s, want %s; status -want +got:\n%s", w.lab.Server.Addresses()[key], addressOf(before), diff)
	}
}

func (w *world) reconcileOf(t *testing.T, obj *inmemoryv1.InMemoryCluster) {
	t.Helper()
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}); err != nil {
		t.Fatal(err)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
}

// TestHijacking checks that an annotation or label with the name of another cluster has no effect on that cluster.
func TestHijacking(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "InMemoryCluster", Name: "infra"}
	w := newWorld(t, cluster, newInfra())
	w.reconcile(t)
	before := w.lab.Server.Addresses()
	evil := newInfra()
	evil.Name, evil.UID = "evil", "evil"
	evil.Annotations = map[string]string{inmemoryv1.ListenerAnnotationName: "default/test"}
	evil.Finalizers = []string{inmemoryv1.ClusterFinalizer}
	testenv.Must(t, w.Create(t.Context(), evil))
	request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(evil)}
	for _, moment := range []string{"while it exists", "when it is deleted"} {
		if _, err := w.runner.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, w.lab.Server.Addresses()); diff != "" || len(w.lab.Cloud.Groups()) != 1 {
			t.Errorf("%s, -want +got:\n%s", moment, diff)
		}
		if group, _ := w.lab.Cloud.Group(key); group.UID() != object.UID("InMemoryCluster", "infra") {
			t.Errorf("%s: the cluster belongs to %s", moment, group.UID())
		}
		_ = w.Delete(t.Context(), evil) // The second time it does not exist.
	}
}

func TestEndpointIsSavedAfterFailedWrite(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.Before = func(r fakeapi.Request) error {
		if r.Verb == "patch" && r.Subresource == "" {
			return errors.New("killed")
		}
		return nil
	}
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: infra}); err == nil {
		t.Fatal("the write must fail")
	}
	w.Before = nil
	w.reconcile(t)
	if got := addressOf(w.read(t)); w.lab.Server.Addresses()[key] != got {
		t.Errorf("the endpoint is %q, want that of the open cluster", got)
	}
}

func TestIgnored(t *testing.T) {
	paused := newCluster()
	object.Paused(paused)
	managed := newInfra()
	managed.Annotations = map[string]string{clusterv1.ManagedByAnnotation: "terraform"}
	orphan := newInfra()
	orphan.OwnerReferences = nil
	unlabelled := orphan.DeepCopy()
	unlabelled.Labels = nil
	tests := []struct {
		reason  string
		objects []client.Object
	}{
		{"it is externally managed", []client.Object{newCluster(), managed}},
		{"its Cluster is paused", []client.Object{paused, newInfra()}},
		{"it has no owner reference yet", []client.Object{newCluster(), orphan}},
		{"it has no label", []client.Object{newCluster(), unlabelled}},
		{"its Cluster does not exist", []client.Object{newInfra()}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, tt.objects...)
			before := w.read(t)
			w.reconcile(t)
			if diff := cmp.Diff(before, w.read(t)); diff != "" || len(w.lab.Server.Addresses()) != 0 {
				t.Errorf("the object was changed, -want +got:\n%s", diff)
			}
		})
	}
}

func TestUnpause(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.Paused = ptr.To(true)
	w := newWorld(t, cluster, newInfra())
	w.reconcile(t)
	live := &clusterv1.Cluster{}
	testenv.Must(t, w.Get(t.Context(), key, live))
	live.Spec.Paused = ptr.To(false)
	live.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
	testenv.Must(t, w.Update(t.Context(), live))
	w.reconcile(t)
	if !w.read(t).Status.Ready {
		t.Error("it must open when its Cluster is resumed")
	}
}

// TestGoneWithoutBeingClosed deletes an object whose finalizer was removed by others.
func TestGoneWithoutBeingClosed(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.reconcile(t)
	obj := w.read(t)
	other := obj.DeepCopy()
	other.UID = "another object with this name"
	w.gone(t.Context(), event.DeleteEvent{Object: other}, nil)
	if len(w.lab.Cloud.Groups()) != 1 || len(w.lab.Server.Addresses()) != 1 {
		t.Error("the deletion of a predecessor shut down the cluster")
	}
	w.gone(t.Context(), event.DeleteEvent{Object: obj}, nil)
	if len(w.lab.Cloud.Groups()) != 0 || len(w.lab.Server.Addresses()) != 0 {
		t.Error("the workload cluster still exists")
	}
}

func TestClose(t *testing.T) {
	tests := []struct {
		reason string
		before func(t *testing.T, w *world)
	}{
		{"an open cluster", func(t *testing.T, w *world) { w.reconcile(t) }},
		{"without Cluster and label", func(t *testing.T, w *world) {
			w.reconcile(t)
			obj := w.read(t)
			obj.Labels = nil
			testenv.Must(t, w.Update(t.Context(), obj))
			testenv.Must(t, w.Delete(t.Context(), newCluster()))
		}},
		{"after a restart", func(t *testing.T, w *world) { w.reconcile(t); w.restart(t) }},
		{"never opened", func(t *testing.T, w *world) {
			obj := w.read(t)
			obj.Finalizers = []string{inmemoryv1.ClusterFinalizer}
			testenv.Must(t, w.Update(t.Context(), obj))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, newCluster(), newInfra())
			tt.before(t, w)
			testenv.Must(t, w.Delete(t.Context(), w.read(t)))
			w.reconcile(t)
			if err := w.Get(t.Context(), infra, &inmemoryv1.InMemoryCluster{}); !apierrors.IsNotFound(err) {
				t.Errorf("the object still exists: %v", err)
			}
			if len(w.lab.Cloud.Groups()) != 0 || len(w.lab.Server.Addresses()) != 0 {
				t.Errorf("left: groups %v, endpoints %v", w.lab.Cloud.Groups(), w.lab.Server.Addresses())
			}
		})
	}
}

// TestClusterEvents: the cache of Clusters may lag behind that of InMemoryClusters. Those that have waited for their Cluster are reconciled
// when it appears, or, if it is a Cluster of a class, when it refers to them.
func TestClusterEvents(t *testing.T) {
	selected := ofClusters()
	of := func(changes ...func(*clusterv1.Cluster)) *clusterv1.Cluster {
		c := &clusterv1.Cluster{}
		for _, change := range changes {
			change(c)
		}
		return c
	}
	refers := func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{Kind: "InMemoryCluster", Name: "infra"}
	}
	paused := func(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }
	ready := func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(true) }
	if !selected.Create(event.CreateEvent{Object: of(refers)}) {
		t.Error("the creation of a Cluster is not selected")
	}
	for _, tt := range []struct {
		reason        string
		before, after *clusterv1.Cluster
		want          bool
	}{
		{"it refers to its infrastructure now", of(), of(refers), true},
		{"it is no longer paused", of(refers, paused), of(refers), true},
		{"nothing that matters changes", of(refers), of(refers, ready), false},
	} {
		if got := selected.Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: selected: %t", tt.reason, got)
		}
	}
}
