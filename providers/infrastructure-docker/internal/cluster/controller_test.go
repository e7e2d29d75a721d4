package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func TestStepsAreDocumented(t *testing.T) {
	testenv.StepsDocumented(t, (&Controller{kinds: kinds.Docker()}).declared().Names())
}

func TestCreate(t *testing.T) {
	obj := newInfra()
	obj.Spec.FailureDomains = []clusterv1.FailureDomain{{Name: "fd1", ControlPlane: ptr.To(true)}}
	w := newWorld(t, newCluster(), obj)
	w.must()
	got := w.read()
	if want := (clusterv1.APIEndpoint{Host: "172.18.0.3", Port: 6443}); got.Spec.ControlPlaneEndpoint != want {
		t.Errorf("endpoint %+v, want %+v", got.Spec.ControlPlaneEndpoint, want)
	}
	if !ptr.Deref(got.Status.Initialization.Provisioned, false) || !condition.IsTrue(got, dockerv1.LoadBalancerAvailableV1Beta1Condition) || !condition.IsTrue(got, clusterv1.ReadyV1Beta1Condition) {
		t.Errorf("it is not ready: %+v", got.Status)
	}
	if diff := cmp.Diff(obj.Spec.FailureDomains, got.Status.FailureDomains); diff != "" {
		t.Errorf("failure domains, -want +got:\n%s", diff)
	}
	if !slices.Contains(got.Finalizers, dockerv1.ClusterFinalizer) || got.Annotations[identity.Annotation] != "infra-uid" {
		t.Errorf("it has no finalizer and identity: %+v", got.ObjectMeta)
	}
	c, _ := w.runtime.Created(lb)
	want := map[string]string{
		identity.ClusterLabel: "test", identity.RoleLabel: "external-load-balancer", identity.KindLabel: "DockerCluster",
		identity.NamespaceLabel: "default", identity.NameLabel: "infra", identity.IdentityLabel: "infra-uid",
	}
	if diff := cmp.Diff(want, c.Labels); diff != "" || c.Image != "kindest/haproxy:v20230510-486859a6" || c.Network != "kind" || c.Privileged {
		t.Errorf("container %+v, labels -want +got:\n%s", c, diff)
	}
	w.Writes = nil
	w.runtime.Forget()
	w.must()
	if diff := cmp.Diff([]string{"Inspect " + lb, "Read " + lb}, w.runtime.Calls()); diff != "" || len(w.Writes) > 0 {
		t.Errorf("a steady cluster costs writes %v, calls -want +got:\n%s", w.Writes, diff)
	}
}

func TestWrites(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra(), newMachine("test-1", "172.18.0.9"))
	w.must()
	want := []string{"patch DockerCluster infra", "patch DockerMachine/status test-1", "patch DockerCluster infra", "patch DockerCluster/status infra"}
	if diff := cmp.Diff(want, w.Writes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCreateIsInterrupted(t *testing.T) {
	start := func(t *testing.T) *world {
		return newWorld(t, newCluster(), newInfra(), newMachine("test-1", "172.18.0.9"))
	}
	interrupted(t, start, func(w *world) {
		got := w.read()
		if !ptr.Deref(got.Status.Initialization.Provisioned, false) || got.Spec.ControlPlaneEndpoint.Host == "" || !slices.Equal(w.registered(), []string{"test-1"}) {
			t.Errorf("it is not ready: %+v, registered %v", got, w.registered())
		}
		if diff := cmp.Diff(map[string]string{"test-1": "172.18.0.9:6443"}, w.servers()); diff != "" {
			t.Errorf("servers, -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{lb}, w.runtime.Containers()); diff != "" {
			t.Errorf("containers, -want +got:\n%s", diff)
		}
	})
}

func TestDeleteIsInterrupted(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, newCluster(), newInfra())
		w.must()
		if err := w.Delete(t.Context(), newInfra()); err != nil {
			t.Fatal(err)
		}
		return w
	}
	interrupted(t, start, func(w *world) {
		if err := w.Get(w.t.Context(), infraKey(), &dockerv1.DockerCluster{}); !apierrors.IsNotFound(err) {
			w.t.Errorf("the object exists: %v", err)
		}
		if containers, networks := w.runtime.Containers(), w.runtime.Networks(); len(containers)+len(networks) > 0 {
			w.t.Errorf("left: containers %v, networks %v", containers, networks)
		}
	})
}

// TestReplaceIsInterrupted checks that HAProxy always loads the last configuration, wherever the process was killed.
func TestReplaceIsInterrupted(t *testing.T) {
	start := func(t *testing.T) *world {
		w := newWorld(t, newCluster(), newInfra(), newMachine("test-1", "172.18.0.9"))
		w.must()
		if err := w.Create(t.Context(), newMachine("test-2", "172.18.0.10")); err != nil {
			t.Fatal(err)
		}
		w.loaded = nil
		return w
	}
	interrupted(t, start, func(w *world) {
		if len(w.loaded) == 0 {
			w.t.Error("HAProxy has not loaded the configuration")
		}
		if diff := cmp.Diff([]string{"test-1", "test-2"}, sortedKeys(w.servers())); diff != "" {
			w.t.Errorf("servers, -want +got:\n%s", diff)
		}
		w.loaded = nil
		w.must()
		if len(w.loaded) > 0 {
			w.t.Error("HAProxy loads a configuration again that it has loaded")
		}
	})
}

// TestLoadWhileStarting checks that a configuration is loaded again that HAProxy was told to load while it may have been starting: a
// signal that arrives before it handles signals is lost.
func TestLoadWhileStarting(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.must()
	state, err := w.runtime.Inspect(t.Context(), lb)
	testenv.Must(t, err, w.Create(t.Context(), newMachine("test-1", "172.18.0.9")))
	w.runtime.OnSignal = nil // It is lost.
	w.loaded = nil
	w.Clock.SetTime(state.Started.Add(startTime - time.Second))
	if err := w.reconcile(); !errors.Is(err, errStale) {
		t.Errorf("error %v, want that the controller runs again", err)
	}
	if diff := cmp.Diff([]string{"test-1"}, w.registered()); diff != "" {
		t.Errorf("registered, -want +got:\n%s", diff)
	}

	w.runtime.OnSignal = func(name, _ string) { w.load(name) }
	w.Clock.SetTime(state.Started.Add(startTime))
	w.must()
	w.must()
	if len(w.loaded) != 1 {
		t.Errorf("HAProxy loads the configuration %d times after it has started, want 1", len(w.loaded))
	}
}

// TestRevertAfterKill checks that a configuration is loaded that is equal to one before the last, which was loaded by a process
// that was killed before it could record that.
func TestRevertAfterKill(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra(), newMachine("test-1", "172.18.0.9"))
	w.must()
	update(w, newMachine("test-1", ""), func(m *dockerv1.DockerMachine) { m.Status.Addresses[1].Address = "172.18.0.99" })
	signaled := false
	w.runtime.Fail = func(call, _ string) error {
		if call == "Signal" {
			signaled = true
		} else if signaled && call == "Copy" {
			return enginetest.ErrKilled
		}
		return nil
	}
	if err := w.reconcile(); err == nil {
		t.Fatal("it was not killed")
	}
	w.runtime.Fail, w.loaded = nil, nil
	update(w, newMachine("test-1", ""), func(m *dockerv1.DockerMachine) { m.Status.Addresses[1].Address = "172.18.0.9" })
	w.must()
	if diff := cmp.Diff(map[string]string{"test-1": "172.18.0.9:6443"}, w.servers()); diff != "" || len(w.loaded) != 1 {
		t.Errorf("loaded %d times, servers -want +got:\n%s", len(w.loaded), diff)
	}
}

func TestBackends(t *testing.T) {
	machine := func(labels map[string]string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test-w", UID: "m", Labels: labels}}
	}
	leaving := machine(map[string]string{clusterv1.MachineControlPlaneLabel: ""})
	leaving.Finalizers, leaving.DeletionTimestamp = []string{clusterv1.MachineFinalizer}, &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
	configured := func(m *dockerv1.DockerMachine) *dockerv1.DockerMachine {
		m.Status.LoadBalancerConfigured = true
		return m
	}
	deleted := func(m *dockerv1.DockerMachine) *dockerv1.DockerMachine {
		m.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
		return m
	}
	elsewhere := newMachine("test-3", "172.18.0.9")
	elsewhere.Namespace = "other"
	tests := []struct {
		reason string
		in     []client.Object
		want   map[string]string
		// registered are the machines that may start their bootstrap.
		registered []string
	}{
		{reason: "a machine without an address is not ready for requests", in: []client.Object{newMachine("test-1", "")}, want: map[string]string{}},
		{
			reason: "the name of the container has the name of the cluster once", in: []client.Object{newMachine("test-1", "10.0.0.1"), newMachine("x", "10.0.0.2")},
			want: map[string]string{"test-1": "10.0.0.1:6443", "test-x": "10.0.0.2:6443"}, registered: []string{"test-1", "x"},
		},
		{reason: "workers are no backends", in: []client.Object{newWorker("test-w", "10.0.0.1"), machine(nil)}, want: map[string]string{}},
		{
			reason: "a control plane Machine without a control plane provider has the label itself",
			in:     []client.Object{newWorker("test-w", "10.0.0.1"), machine(map[string]string{clusterv1.MachineControlPlaneLabel: ""})},
			want:   map[string]string{"test-w": "10.0.0.1:6443"}, registered: []string{"test-w"},
		},
		{
			reason: "a machine that is being deleted gets no new connections", in: []client.Object{deleted(configured(newMachine("test-1", "10.0.0.1"))), newMachine("test-2", "10.0.0.2")},
			want: map[string]string{"test-2": "10.0.0.2:6443"}, registered: []string{"test-2"},
		},
		{
			reason: "nor does one whose Machine is being deleted: its etcd member is removed before it", in: []client.Object{configured(newWorker("test-w", "10.0.0.1")), leaving, newMachine("test-2", "10.0.0.2")},
			want: map[string]string{"test-2": "10.0.0.2:6443"}, registered: []string{"test-2"},
		},
		{reason: "the last one gets them, because its deletion needs them", in: []client.Object{deleted(configured(newMachine("test-1", "10.0.0.1")))}, want: map[string]string{"test-1": "10.0.0.1:6443"}, registered: []string{"test-1"}},
		{reason: "machines of a Cluster of the same name in another namespace are of another cluster", in: []client.Object{elsewhere}, want: map[string]string{}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.in, newCluster(), newInfra())...)
			w.must()
			if diff := cmp.Diff(tc.want, w.servers()); diff != "" {
				t.Errorf("servers, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tc.registered, w.registered()); diff != "" {
				t.Errorf("registered, -want +got:\n%s", diff)
			}
		})
	}
}

// TestStaleCache checks that a machine does not leave the configuration because the cache does not have it yet.
func TestStaleCache(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra(), newMachine("test-1", "10.0.0.1"), newMachine("test-2", "10.0.0.2"))
	w.must()
	w.Cache.Hide(newMachine("test-2", ""))
	if err := w.reconcile(); !errors.Is(err, errStale) {
		t.Errorf("error %v, want one about a stale cache", err)
	}
	if diff := cmp.Diff([]string{"test-1", "test-2"}, sortedKeys(w.servers())); diff != "" {
		t.Errorf("servers, -want +got:\n%s", diff)
	}
	update(w, newMachine("test-2", ""), func(m *dockerv1.DockerMachine) { m.Finalizers = nil })
	if err := w.Delete(t.Context(), newMachine("test-2", "")); err != nil {
		t.Fatal(err)
	}
	w.Cache.Thaw()
	w.must()
	if diff := cmp.Diff([]string{"test-1"}, sortedKeys(w.servers())); diff != "" {
		t.Errorf("servers, -want +got:\n%s", diff)
	}
}

func TestContainers(t *testing.T) {
	foreign := func(labels map[string]string) engine.State {
		return engine.State{Name: lb, Running: true, IPv4: "172.18.0.50", Started: metav1.Now().Time, Labels: labels}
	}
	ours := (&scope{obj: kinds.OfDockerCluster(newInfra())}).claim("test").Labels()
	old := map[string]string{identity.ClusterLabel: "test", identity.RoleLabel: string(identity.LoadBalancer)}
	other := func(key, value string) map[string]string {
		labels := (&scope{obj: kinds.OfDockerCluster(newInfra())}).claim("test").Labels()
		labels[key] = value
		return labels
	}
	had := newInfra()
	had.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "172.18.0.50", Port: 6443}
	tests := []struct {
		reason string
		obj    *dockerv1.DockerCluster
		in     engine.State
		// conflict is part of the condition; empty if the container is that of the object.
		conflict string
	}{
		{reason: "our own", obj: newInfra(), in: foreign(ours)},
		{reason: "that of another program", obj: newInfra(), in: foreign(nil), conflict: "something other than this provider"},
		{reason: "that of a Cluster in another namespace", obj: newInfra(), in: foreign(other(identity.NamespaceLabel, "other")), conflict: "DockerCluster other/infra"},
		{reason: "that of another management cluster", obj: newInfra(), in: foreign(other(identity.IdentityLabel, "x")), conflict: "another management cluster"},
		{reason: "a container of kind, for an object that had none", obj: newInfra(), in: foreign(old), conflict: "something other than this provider"},
		{reason: "a container of v1.7, for an object that had one", obj: had, in: foreign(old)},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newCluster(), tc.obj)
			w.runtime.Put(tc.in)
			err := w.reconcile()
			got := w.read()
			if tc.conflict == "" {
				if err != nil || got.Spec.ControlPlaneEndpoint.Host != "172.18.0.50" {
					t.Errorf("endpoint %+v, error %v", got.Spec.ControlPlaneEndpoint, err)
				}
			} else {
				c := condition.Get(got, dockerv1.LoadBalancerAvailableV1Beta1Condition)
				if err == nil || c == nil || c.Status != corev1.ConditionFalse || c.Severity != clusterv1.ConditionSeverityWarning ||
					c.Reason != dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason || !strings.Contains(c.Message, tc.conflict) {
					t.Errorf("condition %+v, error %v", c, err)
				}
			}
			if err := w.Delete(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			w.must()
			if removed := len(w.runtime.Containers()) == 0; removed != (tc.conflict == "") {
				t.Errorf("removed: %v", removed)
			}
		})
	}
}

// TestMoved checks that a container belongs to its object after "clusterctl move", which gives it another UID.
func TestMoved(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.must()
	before := w.read()
	moved := newInfra()
	moved.UID, moved.Annotations, moved.Finalizers, moved.Spec = "another-uid", before.Annotations, before.Finalizers, before.Spec
	there := newWorld(t, newCluster(), moved)
	there.runtime = w.runtime
	there.must()
	got := there.read()
	if diff := cmp.Diff(before.Spec, got.Spec); diff != "" || !ptr.Deref(got.Status.Initialization.Provisioned, false) {
		t.Errorf("status %+v, spec -want +got:\n%s", got.Status, diff)
	}
}

func TestRecovery(t *testing.T) {
	tests := []struct {
		reason string
		happen func(w *world)
		// ready is whether the cluster is available after the next reconcile, and message part of its condition if not.
		message string
	}{
		{reason: "it was stopped", happen: func(w *world) { w.runtime.Kill(lb, 137) }},
		{reason: "it was removed by hand, and got another address", message: "has the address 172.18.0.", happen: func(w *world) {
			if err := w.runtime.Remove(w.t.Context(), lb); err != nil {
				w.t.Fatal(err)
			}
		}},
		{reason: "it has another address", message: "the endpoint of the cluster is 172.18.0.3", happen: func(w *world) { w.runtime.Move(lb, "172.18.0.77") }},
		{reason: "it exits again and again", message: `exits after it is started (see "docker logs test-lb")`, happen: func(w *world) {
			w.runtime.Move(lb, "")
		}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newCluster(), newInfra(), newMachine("test-1", "172.18.0.9"))
			w.must()
			tc.happen(w)
			err := w.reconcile()
			c := condition.Get(w.read(), dockerv1.LoadBalancerAvailableV1Beta1Condition)
			if (tc.message == "") != (err == nil) || !strings.Contains(c.Message, tc.message) || (c.Status == corev1.ConditionTrue) != (tc.message == "") {
				t.Errorf("condition %+v, error %v", c, err)
			}
			if !ptr.Deref(w.read().Status.Initialization.Provisioned, false) {
				t.Error("it is not provisioned, but the cluster was ready once")
			}
		})
	}
}

func TestFailures(t *testing.T) {
	tests := []struct {
		reason string
		fault  func(w *world)
		want   string
	}{
		{reason: "no Docker", want: "not running", fault: func(w *world) {
			w.runtime.Fail = func(string, string) error { return enginetest.Failure(engine.Unavailable, "Docker is not running") }
		}},
		{reason: "an image that does not exist", want: "kindest/haproxy:v20230510-486859a6", fault: func(w *world) {
			w.runtime.Absent = map[string]bool{"kindest/haproxy:v20230510-486859a6": true}
		}},
		{reason: "the disk is full", want: "no space", fault: func(w *world) {
			w.runtime.Fail = func(call, _ string) error {
				if call == "Create" {
					return enginetest.Failure(engine.NoSpace, "no space left on device")
				}
				return nil
			}
		}},
		{reason: "it does not start", want: "cannot start", fault: func(w *world) {
			w.runtime.OnStart = func(engine.Container) error { return enginetest.Failure(engine.Unknown, "cannot start") }
		}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, newCluster(), newInfra())
			tc.fault(w)
			_ = w.reconcile()
			w.jobs.Wait()
			err := w.reconcile() // With the result of the job.
			c := condition.Get(w.read(), dockerv1.LoadBalancerAvailableV1Beta1Condition)
			if err == nil || c == nil || c.Reason != dockerv1.LoadBalancerProvisioningFailedV1Beta1Reason || !strings.Contains(c.Message, tc.want) {
				t.Errorf("condition %+v, error %v", c, err)
			}
			if ready := condition.Get(w.read(), clusterv1.ReadyV1Beta1Condition); ready == nil || ready.Message != "0 of 1 completed" {
				t.Errorf("Ready %+v", ready)
			}
			if left := w.runtime.Containers(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestDeletionFails(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	w.must()
	if err := w.Delete(t.Context(), newInfra()); err != nil {
		t.Fatal(err)
	}
	w.runtime.Fail = func(string, string) error { return enginetest.Failure(engine.Unavailable, "Docker is not running") }
	err := w.reconcile()
	c := condition.Get(w.read(), dockerv1.LoadBalancerAvailableV1Beta1Condition)
	if err == nil || c.Reason != clusterv1.DeletingV1Beta1Reason || c.Severity != clusterv1.ConditionSeverityInfo || !strings.Contains(c.Message, "not running") {
		t.Errorf("condition %+v, error %v", c, err)
	}
}

func TestTemplateOfUser(t *testing.T) {
	const source = "{{range $n, $a := $BackendServers}}  server {{$n}} {{JoinHostPort $a $BackendControlPlanePort}}\n{{end}}"
	obj := newInfra()
	obj.Spec.LoadBalancer.CustomHAProxyConfigTemplateRef = &corev1.LocalObjectReference{Name: "haproxy"}
	configMap := func(key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "haproxy"}, Data: map[string]string{key: value}}
	}
	tests := []struct {
		reason string
		in     []client.Object
		// rejected is what HAProxy says about the configuration.
		rejected, message string
	}{
		{reason: "a valid template", in: []client.Object{configMap("value", source)}},
		{reason: "no ConfigMap", message: "ConfigMap haproxy of spec.loadBalancer.customHAProxyConfigTemplateRef does not exist"},
		{reason: "another key", in: []client.Object{configMap("haproxy.cfg", source)}, message: `has no key "value"`},
		{reason: "not a template", in: []client.Object{configMap("value", "{{")}, message: "not a valid Go template"},
		{reason: "a typo", in: []client.Object{configMap("value", "{{.Backends}}")}, message: "cannot render"},
		{
			reason: "HAProxy rejects it", in: []client.Object{configMap("value", source)}, message: "HAProxy rejects the configuration",
			rejected: "[NOTICE] x\n[ALERT] parsing [candidate.cfg:1]: unknown keyword\n[ALERT] fatal",
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, append(tc.in, newCluster(), obj.DeepCopy(), newMachine("test-1", "10.0.0.1"))...)
			w.runtime.OnExec = func(name string, c engine.Command) error {
				if want := []string{"haproxy", "-c", "-f", candidatePath}; !slices.Equal(c.Args, want) {
					t.Errorf("command %v, want %v", c.Args, want)
				}
				if tc.rejected != "" {
					return &engine.ExitError{Container: name, Program: "haproxy", Code: 1, Output: tc.rejected}
				}
				return nil
			}
			err := w.reconcile()
			got := w.read()
			c := condition.Get(got, dockerv1.LoadBalancerAvailableV1Beta1Condition)
			if tc.message == "" {
				if diff := cmp.Diff(map[string]string{"test-1": "10.0.0.1:6443"}, w.servers()); err != nil || diff != "" {
					t.Errorf("error %v, servers -want +got:\n%s", err, diff)
				}
				return
			}
			if err == nil || !strings.Contains(c.Message, tc.message) || ptr.Deref(got.Status.Initialization.Provisioned, false) || len(w.registered()) > 0 {
				t.Errorf("condition %+v, status %+v, error %v", c, got.Status, err)
			}
			if tc.rejected != "" && !strings.Contains(c.Message, "unknown keyword") {
				t.Errorf("the condition does not say what HAProxy rejects: %s", c.Message)
			}
			if len(w.servers()) > 0 {
				t.Errorf("HAProxy gets the configuration: %v", w.servers())
			}
		})
	}
}

func TestIgnored(t *testing.T) {
	external, unowned, paused, unreferenced := newInfra(), newInfra(), newCluster(), newCluster()
	external.Annotations = map[string]string{clusterv1.ManagedByAnnotation: ""}
	unowned.OwnerReferences = nil
	paused.Spec.Paused = ptr.To(true)
	unreferenced.Spec.InfrastructureRef.Name = "another"
	tests := []struct {
		reason string
		in     []client.Object
	}{
		{reason: "externally managed", in: []client.Object{external, newCluster()}},
		{reason: "not owned by its Cluster", in: []client.Object{unowned, newCluster()}},
		{reason: "its Cluster does not exist", in: []client.Object{newInfra()}},
		{reason: "paused", in: []client.Object{newInfra(), paused}},
		{reason: "its Cluster references another object", in: []client.Object{newInfra(), unreferenced}},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			w := newWorld(t, tc.in...)
			w.must()
			if calls := w.runtime.Calls(); len(calls)+len(w.Writes) > 0 {
				t.Errorf("calls %v, writes %v", calls, w.Writes)
			}
		})
	}
}

func TestMapping(t *testing.T) {
	w := newWorld(t, newCluster(), newInfra())
	c := &Controller{Clients: w.ForController(), kinds: kinds.Docker()}
	for container, want := range map[string]int{lb: 1, "test-1": 0, "other-lb": 0} {
		if got := c.named(t.Context(), "test", container); len(got) != want {
			t.Errorf("container %s of v1.7 leads to %v", container, got)
		}
	}
	for _, m := range []*dockerv1.DockerMachine{newMachine("test-1", ""), newWorker("test-2", "")} {
		if got := c.ofMachine(t.Context(), m); len(got) != 1 || got[0].NamespacedName != infraKey() {
			t.Errorf("DockerMachine %s leads to %v", m.Name, got)
		}
	}
}

func TestIPFamily(t *testing.T) {
	ranges := func(cidrs ...string) clusterv1.NetworkRanges { return clusterv1.NetworkRanges{CIDRBlocks: cidrs} }
	tests := []struct {
		reason  string
		network clusterv1.ClusterNetwork
		want    bool
	}{
		{reason: "no network"},
		{reason: "IPv4", network: clusterv1.ClusterNetwork{Pods: ranges("10.0.0.0/8")}},
		{reason: "IPv6", network: clusterv1.ClusterNetwork{Pods: ranges("fd00::/64"), Services: ranges("fd01::/112")}, want: true},
		{reason: "both", network: clusterv1.ClusterNetwork{Pods: ranges("fd00::/64", "10.0.0.0/8")}},
	}
	for _, tc := range tests {
		cluster := newCluster()
		cluster.Spec.ClusterNetwork = tc.network
		if got := isIPv6(cluster); got != tc.want {
			t.Errorf("%s: IPv6 %v", tc.reason, got)
		}
	}
}

func TestMovedEndpoint(t *testing.T) {
	tests := []struct {
		reason, host, v4, v6 string
		want                 bool
	}{
		{reason: "no endpoint yet", v4: "172.18.0.3"},
		{reason: "the address", host: "172.18.0.3", v4: "172.18.0.3"},
		{reason: "another address of the network", host: "172.18.0.4", v4: "172.18.0.3", want: true},
		{reason: "a name that the user set", host: "example.com", v4: "172.18.0.3"},
		{reason: "an address that the user set", host: "192.0.2.1", v4: "172.18.0.3"},
		{reason: "IPv6", host: "fc00::4", v4: "172.18.0.3", v6: "fc00::3", want: true},
	}
	for _, tc := range tests {
		if got := moved(tc.host, tc.v4, tc.v6); got != tc.want {
			t.Errorf("%s: %v", tc.reason, got)
		}
	}
}
