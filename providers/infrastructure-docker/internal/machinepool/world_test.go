package machinepool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world is a management cluster with a pool, the controllers that it works with, and its own controller, which can be killed.
type world struct {
	*fakeapi.Server
	runner *step.Runner[*dockerv1.DockerMachinePool]
	// killAt is the request, from 1, before or after which the process is killed; zero: never.
	killAt     int
	killBefore bool
	count      int
	dead       bool
}

var errKilled = errors.New("killed")

// poolObjects are a Cluster, a MachinePool with bootstrap data, and its DockerMachinePool.
type poolObjects struct {
	cluster *clusterv1.Cluster
	pool    *clusterv1.MachinePool
	obj     *dockerv1.DockerMachinePool
}

func newWorld(t *testing.T, replicas int32, with ...func(*poolObjects)) *world {
	t.Helper()
	build := object.Builder{}
	in := &poolObjects{cluster: build.Cluster(object.InfrastructureReady)}
	in.pool = build.MachinePool("p", func(p *clusterv1.MachinePool) {
		p.Spec.Replicas = &replicas
		p.Spec.Template.Spec.Version = "v1.36.3"
		p.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("data")
		p.Spec.Template.Spec.InfrastructureRef.Kind, p.Spec.Template.Spec.InfrastructureRef.Name = Kind, "p"
	})
	in.obj = &dockerv1.DockerMachinePool{ObjectMeta: build.Meta(Kind, "p")}
	in.obj.OwnerReferences = []metav1.OwnerReference{ownership.Reference(in.pool, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), true)}
	for _, f := range with {
		f(in)
	}
	w := &world{Server: fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{dockerv1.AddToScheme}, Objects: []client.Object{in.cluster, in.pool, in.obj},
	})}
	w.Before = func(r fakeapi.Request) error { return w.interrupted(r, true) }
	w.After = func(r fakeapi.Request, err error) error { return cmp.Or(w.interrupted(r, false), err) }
	w.restart()
	return w
}

// interrupted kills the process at the chosen request: its later requests fail.
func (w *world) interrupted(r fakeapi.Request, before bool) error {
	if r.Cached {
		return nil
	}
	if before {
		w.count++
	}
	w.dead = w.dead || w.killAt > 0 && w.count == w.killAt && before == w.killBefore
	if w.dead {
		return errKilled
	}
	return nil
}

// restart starts a new process, whose cache is up to date.
func (w *world) restart() {
	w.dead, w.killAt, w.Cache = false, 0, w.NewCache()
	w.runner = machinepool.New(Provider(), w.ForController()).Runner()
}

func (w *world) reconcile(t *testing.T) (ctrl.Result, error) {
	t.Helper()
	return w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}})
}

func (w *world) must(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := w.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// read returns the pool; nil if it no longer exists.
func (w *world) read(t *testing.T) *dockerv1.DockerMachinePool {
	t.Helper()
	obj := &dockerv1.DockerMachinePool{}
	err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, obj)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return obj
}

func (w *world) dockerMachines(t *testing.T) []dockerv1.DockerMachine {
	t.Helper()
	list := &dockerv1.DockerMachineList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// machines returns what the pool has: one word per machine, its ordinal with "v" and its version, if it differs from v1.36.3, and with
// "d" if it is being deleted; and "r" if it is ready.
func (w *world) machines(t *testing.T) string {
	t.Helper()
	var words []string
	for _, obj := range w.dockerMachines(t) {
		word := obj.Annotations[ordinalAnnotation]
		m := &clusterv1.Machine{}
		if w.Get(t.Context(), client.ObjectKeyFromObject(&obj), m) == nil {
			if v := m.Spec.Version; v != "v1.36.3" {
				word += v
			}
		}
		if ptr.Deref(obj.Status.Initialization.Provisioned, false) {
			word += "r"
		}
		if !obj.DeletionTimestamp.IsZero() || !m.DeletionTimestamp.IsZero() {
			word += "d"
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

// others acts as the controllers of Machines, MachinePools and DockerMachines would: DockerMachines get Machines and Nodes that become ready, deleted
// Machines end. It reports whether it did something.
func (w *world) others(t *testing.T) (did bool) {
	t.Helper()
	pool := &clusterv1.MachinePool{}
	if err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, pool); err != nil {
		t.Fatal(err)
	}
	list := w.dockerMachines(t)
	for i := range list {
		obj := &list[i]
		m := &clusterv1.Machine{}
		err := w.Get(t.Context(), client.ObjectKeyFromObject(obj), m)
		switch {
		case err != nil && obj.DeletionTimestamp.IsZero():
			w.adopt(t, pool, obj)
		case err == nil && !m.DeletionTimestamp.IsZero():
			w.ended(t, m, obj)
		case !obj.DeletionTimestamp.IsZero():
			w.ended(t, obj)
		case !ptr.Deref(obj.Status.Initialization.Provisioned, false):
			w.join(t, obj)
		case !condition.IsTrue(m, clusterv1.MachineNodeHealthyV1Beta1Condition):
			condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
			w.try(t, w.Status().Update(t.Context(), m))
		default:
			continue
		}
		did = true
	}
	return did
}

// adopt creates the Machine of a DockerMachine.
func (w *world) adopt(t *testing.T, pool *clusterv1.MachinePool, obj *dockerv1.DockerMachine) {
	t.Helper()
	m := object.Builder{}.Machine(obj.Name, func(m *clusterv1.Machine) {
		m.UID = ""
		m.Labels[clusterv1.MachinePoolNameLabel] = pool.Name
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		m.Spec.Version = pool.Spec.Template.Spec.Version
		m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "DockerMachine", obj.Name
	})
	w.try(t, w.Create(t.Context(), m))
	n, _ := strconv.Atoi(obj.Annotations[ordinalAnnotation]) // Zero if another created it.
	obj.CreationTimestamp = metav1.NewTime(object.Now().Add(time.Duration(n) * time.Minute))
	obj.Finalizers = []string{dockerv1.MachineFinalizer}
	obj.OwnerReferences = append(obj.OwnerReferences, ownership.Reference(m, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), true))
	w.try(t, w.Update(t.Context(), obj))
}

func (w *world) join(t *testing.T, obj *dockerv1.DockerMachine) {
	t.Helper()
	obj.Spec.ProviderID = "docker:////c-" + obj.Name
	w.try(t, w.Update(t.Context(), obj))
	obj.Status.Initialization.Provisioned = ptr.To(true)
	condition.Set(obj, condition.True(dockerv1.BootstrapExecSucceededV1Beta1Condition))
	obj.Status.Addresses = []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "172.18.0.3"}}
	w.try(t, w.Status().Update(t.Context(), obj))
}

// ended removes objects with finalizers.
func (w *world) ended(t *testing.T, all ...client.Object) {
	t.Helper()
	for _, obj := range all {
		obj.SetFinalizers(nil)
		w.try(t, client.IgnoreNotFound(w.Update(t.Context(), obj)))
		w.try(t, client.IgnoreNotFound(w.Client.Delete(t.Context(), obj)))
	}
}

func (w *world) try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// settle reconciles, and lets the other controllers act, until nothing happens. It returns what the pool had after each
// reconcile that changed it.
func (w *world) settle(t *testing.T) (history []string) {
	t.Helper()
	for range 60 {
		before := len(w.Writes)
		_, err := w.reconcile(t)
		if err != nil && !w.dead && !step.IsStale(err) {
			t.Fatal(err)
		}
		killed := w.dead
		if w.dead {
			w.restart()
		}
		if now := w.machines(t); len(history) == 0 || history[len(history)-1] != now {
			history = append(history, now)
		}
		if !w.others(t) && len(w.Writes) == before && !killed && err == nil {
			return history
		}
	}
	t.Fatalf("does not settle: %v", history)
	return nil
}

// states returns an object's conditions in short form.
func states(obj *dockerv1.DockerMachinePool) map[clusterv1.ConditionType]string {
	out := map[clusterv1.ConditionType]string{}
	for _, c := range obj.GetV1Beta1Conditions() {
		out[c.Type] = strings.TrimSuffix(strings.Join(strings.Fields(fmt.Sprintf("%s %s %s: %s", c.Status, c.Severity, c.Reason, c.Message)), " "), ":")
		out[c.Type] = strings.TrimSpace(out[c.Type])
	}
	return out
}

// scaled changes the MachinePool.
func (w *world) scaled(t *testing.T, change func(*clusterv1.MachinePool)) {
	t.Helper()
	pool := &clusterv1.MachinePool{}
	w.try(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, pool))
	change(pool)
	w.try(t, w.Update(t.Context(), pool))
}
