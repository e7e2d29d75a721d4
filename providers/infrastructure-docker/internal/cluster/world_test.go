package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/job"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/loadbalancer"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

const lb = "test-lb"

// errStale means that a reconcile is retried because the cache is stale.
var errStale = errors.New("the cache is stale")

// world is a management cluster, a container runtime, and HAProxy, which loads its configuration when it starts and by SIGHUP.
type world struct {
	*fakeapi.Server
	t       *testing.T
	set     kinds.Set
	runtime *enginetest.Fake
	jobs    *job.Jobs
	// loaded are the configurations that HAProxy loaded, one after another.
	loaded []string
	// killAt is the number of the write or call of the runtime after which the process is killed. 0: never.
	// Jobs, which count too, run beside the controller.
	killAt, steps atomic.Int64
}

// newWorld returns a world in which the image of the load balancer is present.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, set: kinds.Docker(), runtime: enginetest.New()}
	w.Server = fakeapi.New(t, fakeapi.Options{Kinds: []func(*runtime.Scheme) error{dockerv1.AddToScheme}, Objects: objects})
	w.jobs = job.New(w.Clock)
	w.After = func(r fakeapi.Request, err error) error {
		if r.IsWrite() && w.killed() {
			return enginetest.ErrKilled
		}
		return err
	}
	testenv.Must(t, w.runtime.EnsureImage(t.Context(), imageOf(dockerv1.DockerLoadBalancer{})))
	w.runtime.Forget()
	w.runtime.OnStart = func(c engine.Container) error { w.load(c.Name); return nil }
	w.runtime.OnSignal = func(name, signal string) {
		if signal == "SIGHUP" {
			w.load(name)
		}
	}
	w.runtime.KillAfter = func(string, string) bool { return w.killed() }
	return w
}

// load is HAProxy loading its configuration. It runs with the lock of the runtime when the container starts.
func (w *world) load(string) { w.loaded = append(w.loaded, "") }

// killed counts a step, and reports whether the process is killed after it.
func (w *world) killed() bool { return w.steps.Add(1) == w.killAt.Load() }

// reconcile runs the controller once, as a new process.
func (w *world) reconcile() error { return w.over(w.runtime) }

// over runs the controller once over a container runtime.
func (w *world) over(e engine.Engine) error {
	c := &Controller{Clients: w.ForController(), kinds: w.set, engine: e, jobs: w.jobs}
	result, err := c.declared().Runner(c.Clients).Reconcile(w.t.Context(), ctrl.Request{NamespacedName: infraKey()})
	if err == nil && result.RequeueAfter > 0 {
		return errStale
	}
	return err
}

func (w *world) must() {
	w.t.Helper()
	if err := w.reconcile(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read() *dockerv1.DockerCluster {
	w.t.Helper()
	obj := &dockerv1.DockerCluster{}
	if err := w.Get(w.t.Context(), infraKey(), obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// servers returns the backends of the configuration in the container.
func (w *world) servers() map[string]string {
	servers := map[string]string{}
	for line := range strings.Lines(string(w.runtime.File(lb, loadbalancer.Path))) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "server" {
			servers[fields[1]] = fields[2]
		}
	}
	return servers
}

// registered returns the names of machines with status.loadBalancerConfigured, sorted.
func (w *world) registered() []string {
	w.t.Helper()
	list := &dockerv1.DockerMachineList{}
	if err := w.List(w.t.Context(), list); err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, m := range list.Items {
		if m.Status.LoadBalancerConfigured {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// update changes an object.
func update[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.t.Fatal(err)
	}
	change(obj)
	status, ok := obj.DeepCopyObject().(T)
	if !ok {
		w.t.Fatal("not a copy")
	}
	if err := w.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
	status.SetResourceVersion(obj.GetResourceVersion())
	if err := w.Status().Update(w.t.Context(), status); client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
}

func infraKey() types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: "infra"}
}

func newCluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", UID: "cluster-uid"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "DockerCluster", Name: "infra"}},
	}
}

func newInfra() *dockerv1.DockerCluster {
	return &dockerv1.DockerCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "infra", UID: "infra-uid", Labels: map[string]string{clusterv1.ClusterNameLabel: "test"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "test", UID: "cluster-uid"}},
	}}
}

// newMachine returns a control plane machine, with an address unless it is empty.
func newMachine(name, address string) *dockerv1.DockerMachine {
	m := &dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, UID: types.UID(name + "-uid"), Finalizers: []string{dockerv1.MachineFinalizer},
		Labels: map[string]string{clusterv1.ClusterNameLabel: "test", clusterv1.MachineControlPlaneLabel: ""},
	}}
	if address != "" {
		m.Status.Addresses = []clusterv1.MachineAddress{
			{Type: clusterv1.MachineHostName, Address: name}, {Type: clusterv1.MachineInternalIP, Address: address},
		}
	}
	return m
}

func newWorker(name, address string) *dockerv1.DockerMachine {
	m := newMachine(name, address)
	delete(m.Labels, clusterv1.MachineControlPlaneLabel)
	m.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Machine", Name: name, UID: "m", Controller: ptr.To(true),
	}}
	return m
}

// interrupted runs the controller until it succeeds, once for each write and call after which it is killed, and calls check at
// the end of each run.
func interrupted(t *testing.T, start func(t *testing.T) *world, check func(w *world)) {
	t.Helper()
	for killAt := int64(1); ; killAt++ {
		finished := false
		t.Run(fmt.Sprintf("killed after step %d", killAt), func(t *testing.T) {
			w := start(t)
			w.steps.Store(0)
			w.killAt.Store(killAt)
			for range 10 {
				err := w.reconcile()
				if err == nil {
					break
				}
				if !errors.Is(err, enginetest.ErrKilled) && !strings.Contains(err.Error(), "killed") && !errors.Is(err, errStale) {
					t.Fatalf("an error that is not the kill: %v", err)
				}
			}
			finished = w.steps.Load() < killAt
			w.killAt.Store(0)
			if err := w.reconcile(); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			check(w)
		})
		if finished || t.Failed() {
			return
		}
		if killAt > 100 {
			t.Fatal("it does not end")
		}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
