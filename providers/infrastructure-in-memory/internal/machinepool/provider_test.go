package machinepool

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// world is a management cluster with InMemoryMachinePool p of MachinePool p.
type world struct {
	*fakeapi.Server
	runner *step.Runner[*inmemoryv1.InMemoryMachinePool]
}

func newWorld(t *testing.T, replicas int32) *world {
	t.Helper()
	build := object.Builder{}
	owner := build.MachinePool("p", func(p *clusterv1.MachinePool) {
		p.Spec.Replicas, p.Spec.FailureDomains = &replicas, []string{"b", "a"}
		p.Spec.Template.Spec.Version, p.Spec.Template.Spec.Bootstrap.DataSecretName = "v1.31.0", ptr.To("data")
	})
	obj := &inmemoryv1.InMemoryMachinePool{ObjectMeta: build.Meta("InMemoryMachinePool", "p")}
	obj.OwnerReferences = []metav1.OwnerReference{ownership.Reference(owner, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), true)}
	obj.Spec.Template.Behaviour = startsIn(time.Minute)
	w := &world{Server: fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{inmemoryv1.AddToScheme}, Objects: []client.Object{build.Cluster(object.InfrastructureReady), owner, obj},
	})}
	w.runner = machinepool.New(Provider(), w.ForController()).Runner()
	return w
}

func startsIn(d time.Duration) *inmemoryv1.InMemoryMachineBehaviour {
	return &inmemoryv1.InMemoryMachineBehaviour{VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings{StartupDuration: metav1.Duration{Duration: d}}}}
}

func (w *world) reconcile(t *testing.T) {
	t.Helper()
	if _, err := w.runner.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "p"}}); err != nil {
		t.Fatal(err)
	}
}

// read reads object p.
func read[T client.Object](t *testing.T, w *world, obj T) T {
	t.Helper()
	testenv.Must(t, w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "p"}, obj))
	return obj
}

// machines returns the machines in the order of their ordinals.
func (w *world) machines(t *testing.T) []inmemoryv1.InMemoryMachine {
	t.Helper()
	list := &inmemoryv1.InMemoryMachineList{}
	testenv.Must(t, w.List(t.Context(), list))
	slices.SortFunc(list.Items, func(a, b inmemoryv1.InMemoryMachine) int {
		return strings.Compare(a.Annotations[ordinalAnnotation], b.Annotations[ordinalAnnotation])
	})
	return list.Items
}

// join makes all machines join, as their controller and the core provider do.
func (w *world) join(t *testing.T) {
	t.Helper()
	for _, obj := range w.machines(t) {
		if obj.Status.Ready {
			continue
		}
		m := object.Builder{}.Machine(obj.Name, func(m *clusterv1.Machine) {
			m.UID = ""
			m.Labels[clusterv1.MachinePoolNameLabel] = "p"
			m.Finalizers = []string{clusterv1.MachineFinalizer}
			m.Spec.Version = read(t, w, &clusterv1.MachinePool{}).Spec.Template.Spec.Version
			m.Spec.InfrastructureRef.Kind, m.Spec.InfrastructureRef.Name = "InMemoryMachine", obj.Name
		})
		testenv.Must(t, w.Create(t.Context(), m))
		condition.Set(m, condition.True(clusterv1.MachineNodeHealthyV1Beta1Condition))
		testenv.Must(t, w.Status().Update(t.Context(), m))
		obj.Spec.ProviderID = ptr.To("in-memory://" + obj.Name)
		testenv.Must(t, w.Update(t.Context(), &obj))
		obj.Status.Ready = true
		condition.Set(&obj, condition.True(inmemoryv1.NodeProvisionedCondition))
		testenv.Must(t, w.Status().Update(t.Context(), &obj))
	}
}

func TestPool(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	pool := read(t, w, &inmemoryv1.InMemoryMachinePool{})
	all := w.machines(t)
	if len(all) != 2 {
		t.Fatalf("%d machines", len(all))
	}
	for i, m := range all {
		want := inmemoryv1.InMemoryMachine{
			ObjectMeta: metav1.ObjectMeta{
				Name:        Provider().MachineName(pool, i),
				Labels:      map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"},
				Annotations: map[string]string{ordinalAnnotation: fmt.Sprint(i), dataAnnotation: "data"},
				OwnerReferences: []metav1.OwnerReference{
					ownership.Reference(pool, inmemoryv1.GroupVersion.WithKind("InMemoryMachinePool"), false),
				},
			},
			Spec: inmemoryv1.InMemoryMachineSpec{FailureDomain: []string{"a", "b"}[i], Behaviour: startsIn(time.Minute)},
		}
		have := inmemoryv1.InMemoryMachine{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences}, Spec: m.Spec}
		if diff := cmp.Diff(want, have); diff != "" || !strings.HasPrefix(m.Name, "p-") {
			t.Errorf("machine %d, -want +got:\n%s", i, diff)
		}
	}
	if pool.Status.Ready || pool.Status.Replicas != 2 || pool.Status.InfrastructureMachineKind != "InMemoryMachine" || !slices.Contains(pool.Finalizers, inmemoryv1.MachinePoolFinalizer) {
		t.Errorf("%+v", pool)
	}
	w.join(t)
	w.reconcile(t)
	pool = read(t, w, &inmemoryv1.InMemoryMachinePool{})
	ids := []string{"in-memory://" + all[0].Name, "in-memory://" + all[1].Name}
	slices.Sort(ids)
	if diff := cmp.Diff(ids, pool.Spec.ProviderIDList); diff != "" || !pool.Status.Ready || !condition.IsTrue(pool, clusterv1.ReadyV1Beta1Condition) {
		t.Errorf("%+v, provider IDs -want +got:\n%s", pool.Status, diff)
	}
	requests := len(w.Writes) + len(w.LiveReads)
	w.reconcile(t)
	if now := len(w.Writes) + len(w.LiveReads); now != requests {
		t.Errorf("a pool that is ready costs %d requests", now-requests)
	}
}

// A manager is killed after it has created a machine, before its pool records that: the name must not be used again, even if the machine
// disappears.
func TestOrdinalIsRecordedLater(t *testing.T) {
	w := newWorld(t, 2)
	w.reconcile(t)
	w.join(t)
	w.reconcile(t)
	pool := read(t, w, &inmemoryv1.InMemoryMachinePool{})
	if pool.Annotations[ordinalAnnotation] != "2" {
		t.Fatalf("annotations %v", pool.Annotations)
	}
	for _, recorded := range []string{"1", ""} {
		pool := read(t, w, &inmemoryv1.InMemoryMachinePool{})
		pool.Annotations[ordinalAnnotation] = recorded
		if recorded == "" {
			delete(pool.Annotations, ordinalAnnotation)
		}
		testenv.Must(t, w.Update(t.Context(), pool))
		reads := len(w.LiveReads)
		w.reconcile(t)
		if pool = read(t, w, &inmemoryv1.InMemoryMachinePool{}); pool.Annotations[ordinalAnnotation] != "2" || len(w.machines(t)) != 2 {
			t.Errorf("recorded %q: annotations %v, %d machines", recorded, pool.Annotations, len(w.machines(t)))
		}
		if len(w.LiveReads) == reads {
			t.Errorf("recorded %q: the cached pool may be stale, and must be read", recorded)
		}
		requests := len(w.Writes) + len(w.LiveReads)
		w.reconcile(t)
		if now := len(w.Writes) + len(w.LiveReads); now != requests {
			t.Errorf("a pool that is ready costs %d requests", now-requests)
		}
	}
}

// TestRolloutWaitsForAllObjects changes the three objects of a pool one after another: nothing is replaced until all have the same
// revision, and each machine only once.
func TestRolloutWaitsForAllObjects(t *testing.T) {
	w := newWorld(t, 1)
	w.reconcile(t)
	w.join(t)
	annotate := func(obj client.Object, values map[string]string, change func()) {
		t.Helper()
		read(t, w, obj)
		change()
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, values)
		obj.SetAnnotations(annotations)
		testenv.Must(t, w.Update(t.Context(), obj))
		w.reconcile(t)
	}
	owner, pool := &clusterv1.MachinePool{}, &inmemoryv1.InMemoryMachinePool{}
	for _, one := range []struct {
		after    string
		change   func()
		machines int
	}{
		{"the infrastructure has changed", func() {
			annotate(pool, map[string]string{clusterv1.MachinePoolRevisionAnnotation: "2"}, func() { pool.Spec.Template.Behaviour = startsIn(time.Second) })
		}, 1},
		{"the MachinePool has changed", func() {
			revisions := map[string]string{clusterv1.MachinePoolInfrastructureRevisionAnnotation: "2", clusterv1.MachinePoolBootstrapRevisionAnnotation: "3"}
			annotate(owner, revisions, func() { owner.Spec.Template.Spec.Version = "v1.31.1" })
		}, 1},
		{"the pool is scaled up", func() { annotate(owner, nil, func() { owner.Spec.Replicas = ptr.To[int32](2) }) }, 2},
		{"the bootstrap data has changed", func() {
			annotate(owner, map[string]string{clusterv1.MachinePoolDataRevisionAnnotation: "3"}, func() { owner.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("other") })
		}, 3},
	} {
		one.change()
		if n := len(w.machines(t)); n != one.machines {
			t.Errorf("after %s: %d machines, want %d", one.after, n, one.machines)
		}
		w.join(t)
	}
}

// TestRollout changes what machines are created from: one more is created, and another one goes once that is available.
func TestRollout(t *testing.T) {
	for _, tt := range []struct {
		reason string
		change func(*clusterv1.MachinePool, *inmemoryv1.InMemoryMachinePool)
	}{
		{"version", func(p *clusterv1.MachinePool, _ *inmemoryv1.InMemoryMachinePool) {
			p.Spec.Template.Spec.Version = "v1.31.1"
		}},
		{"bootstrap data", func(p *clusterv1.MachinePool, _ *inmemoryv1.InMemoryMachinePool) {
			p.Spec.Template.Spec.Bootstrap.DataSecretName = ptr.To("other")
		}},
		{"failure domains", func(p *clusterv1.MachinePool, _ *inmemoryv1.InMemoryMachinePool) {
			p.Spec.FailureDomains = []string{"c"}
		}},
		{"behaviour", func(_ *clusterv1.MachinePool, p *inmemoryv1.InMemoryMachinePool) {
			p.Spec.Template.Behaviour = startsIn(time.Second)
		}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, 1)
			w.reconcile(t)
			w.join(t)
			w.reconcile(t)
			owner, pool := read(t, w, &clusterv1.MachinePool{}), read(t, w, &inmemoryv1.InMemoryMachinePool{})
			tt.change(owner, pool)
			testenv.Must(t, w.Update(t.Context(), owner))
			testenv.Must(t, w.Update(t.Context(), pool))
			w.reconcile(t)
			if n := len(w.machines(t)); n != 2 {
				t.Fatalf("%d machines, want a replacement before the first one goes", n)
			}
			w.join(t)
			w.reconcile(t)
			m := &clusterv1.Machine{}
			testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(&w.machines(t)[0]), m))
			if m.DeletionTimestamp.IsZero() {
				t.Error("the outdated Machine is not deleted")
			}
		})
	}
}

// TestExternalReplicas lets the simulated cloud decide on the number of machines.
func TestExternalReplicas(t *testing.T) {
	w := newWorld(t, 1)
	owner, pool := read(t, w, &clusterv1.MachinePool{}), read(t, w, &inmemoryv1.InMemoryMachinePool{})
	pool.Spec.Replicas = ptr.To[int32](3)
	testenv.Must(t, w.Update(t.Context(), pool))
	w.reconcile(t)
	if n := len(w.machines(t)); n != 1 {
		t.Errorf("%d machines without the annotation, want those of the MachinePool", n)
	}
	owner.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
	testenv.Must(t, w.Update(t.Context(), owner))
	w.reconcile(t)
	if n, have := len(w.machines(t)), *read(t, w, &clusterv1.MachinePool{}).Spec.Replicas; n != 3 || have != 3 {
		t.Errorf("%d machines, and %d replicas in the MachinePool", n, have)
	}
	w.join(t)
	w.reconcile(t)
	pool = read(t, w, &inmemoryv1.InMemoryMachinePool{})
	pool.Spec.Replicas = ptr.To[int32](0)
	testenv.Must(t, w.Update(t.Context(), pool))
	w.reconcile(t)
	list := &clusterv1.MachineList{}
	testenv.Must(t, w.List(t.Context(), list))
	for _, m := range list.Items {
		if m.DeletionTimestamp.IsZero() {
			t.Errorf("Machine %s is not deleted, although the cloud wants none", m.Name)
		}
	}
}
