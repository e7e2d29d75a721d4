package machinepool

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
)

func TestPool(t *testing.T) {
	w := newWorld(t, 2, func(o *poolObjects) {
		o.obj.Spec.Template = dockerv1.DockerMachinePoolMachineTemplate{
			CustomImage: "node:x", PreLoadImages: []string{"a"}, ExtraMounts: []dockerv1.Mount{{ContainerPath: "/a", HostPath: "/b"}},
		}
		o.pool.Spec.FailureDomains = []string{"two", "one"}
	})
	w.must(t)
	pool := w.read(t)
	all := w.dockerMachines(t)
	if len(all) != 2 || all[0].Name == all[1].Name {
		t.Fatalf("DockerMachines %+v", all)
	}
	for n := range 2 {
		i := slices.IndexFunc(all, func(m dockerv1.DockerMachine) bool { return m.Annotations[ordinalAnnotation] == fmt.Sprint(n) })
		got := all[i]
		if len(got.Name) != len("worker-")+6 || !strings.HasPrefix(got.Name, "worker-") {
			t.Errorf("name %s", got.Name)
		}
		want := dockerv1.DockerMachineSpec{DockerMachineBackendSpec: dockerv1.DockerMachineBackendSpec{
			CustomImage: "node:x", PreLoadImages: []string{"a"}, ExtraMounts: []dockerv1.Mount{{ContainerPath: "/a", HostPath: "/b"}},
		}}
		if diff := cmp.Diff(want, got.Spec); diff != "" {
			t.Errorf("spec, -want +got:\n%s", diff)
		}
		labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p", identity.PoolLabel: "p"}
		if diff := cmp.Diff(labels, got.Labels); diff != "" {
			t.Errorf("labels, -want +got:\n%s", diff)
		}
		if domain := got.Annotations[identity.FailureDomainLabel]; domain != []string{"one", "two"}[n] {
			t.Errorf("failure domain of machine %d: %q", n, domain)
		}
		if owner := got.OwnerReferences; len(owner) != 1 || owner[0].Kind != Kind || owner[0].UID != pool.UID || ptr.Deref(owner[0].Controller, false) {
			t.Errorf("owner %+v", owner)
		}
	}
	if diff := cmp.Diff([]string{dockerv1.MachinePoolFinalizer}, pool.Finalizers); diff != "" || pool.Spec.ProviderID != "docker:////c-dmp-p" || pool.Status.InfrastructureMachineKind != "DockerMachine" {
		t.Errorf("%s%+v", diff, pool)
	}
	want := map[clusterv1.ConditionType]string{
		"Ready": "False Info WaitingForReplicasReady: 0 of 2 replicas are ready", "MachinesCreated": "True", "Resized": "True",
		"ReplicasReady": "False Info WaitingForReplicasReady: 0 of 2 replicas are ready",
	}
	if diff := cmp.Diff(want, states(pool)); diff != "" || pool.Status.Ready || pool.Status.Replicas != 2 {
		t.Errorf("%+v, conditions -want +got:\n%s", pool.Status, diff)
	}
	if diff := cmp.Diff([]string{"patch DockerMachinePool p", "create DockerMachine " + nameOf(pool, 0), "create DockerMachine " + nameOf(pool, 1), "patch DockerMachinePool p", "patch DockerMachinePool/status p"}, w.Writes); diff != "" {
		t.Errorf("writes, -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"get Cluster c", "get MachinePool p", "get DockerMachinePool p", "list DockerMachine"}, w.LiveReads); diff != "" {
		t.Errorf("live reads, -want +got:\n%s", diff)
	}
	w.checkReady(t, w.settle(t))
}

// checkReady checks the pool of TestPool once its machines are ready.
func (w *world) checkReady(t *testing.T, history []string) {
	t.Helper()
	pool := w.read(t)
	if len(history) != 2 || history[1] != "0r 1r" {
		t.Errorf("history %q", history)
	}
	if got := states(pool); !cmp.Equal(got, map[clusterv1.ConditionType]string{"Ready": "True", "MachinesCreated": "True", "Resized": "True", "ReplicasReady": "True"}) {
		t.Errorf("conditions %v", got)
	}
	first := w.dockerMachines(t)[0].Name
	instance := dockerv1.DockerMachinePoolInstanceStatus{
		Addresses: []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "172.18.0.3"}}, InstanceName: "c-" + first,
		ProviderID: ptr.To("docker:////c-" + first), Version: ptr.To("v1.36.3"), Ready: true, Bootstrapped: true,
	}
	if diff := cmp.Diff(instance, pool.Status.Instances[0]); diff != "" || !pool.Status.Ready || len(pool.Status.Instances) != 2 {
		t.Errorf("ready %v, instance -want +got:\n%s", pool.Status.Ready, diff)
	}
	if len(pool.Spec.ProviderIDList) != 2 || !slices.IsSorted(pool.Spec.ProviderIDList) || pool.Status.ObservedGeneration == 0 {
		t.Errorf("%v, %d", pool.Spec.ProviderIDList, pool.Status.ObservedGeneration)
	}
	requests := len(w.Writes) + len(w.LiveReads)
	w.must(t)
	if now := len(w.Writes) + len(w.LiveReads); now != requests {
		t.Errorf("a pool that is ready costs %d requests", now-requests)
	}
}

func TestPoolWaits(t *testing.T) {
	for _, tt := range []struct {
		reason string
		with   func(*poolObjects)
		want   string
	}{
		{"no infrastructure", func(o *poolObjects) { o.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(false) }, "False Info WaitingForClusterInfrastructure: Waiting for the infrastructure of Cluster c"},
		{"no bootstrap data", func(o *poolObjects) { o.pool.Spec.Template.Spec.Bootstrap.DataSecretName = nil }, "False Info WaitingForBootstrapData: Waiting for the bootstrap data of MachinePool p"},
		{"no owner", func(o *poolObjects) { o.obj.OwnerReferences = nil }, ""},
		{"paused", func(o *poolObjects) { o.cluster.Spec.Paused = ptr.To(true) }, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, 1, tt.with)
			w.must(t)
			if got := states(w.read(t))[dockerv1.ReplicasReadyV1Beta1Condition]; got != tt.want {
				t.Errorf("ReplicasReady %q, want %q", got, tt.want)
			}
			if got := w.machines(t); got != "" || w.read(t).Status.Ready {
				t.Errorf("machines %s", got)
			}
		})
	}
}

func TestPoolChanges(t *testing.T) {
	version := func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "v1.36.4" }
	replicas := func(n int32) func(*clusterv1.MachinePool) {
		return func(p *clusterv1.MachinePool) { p.Spec.Replicas = &n }
	}
	template := func(w *world, t *testing.T, f func(*dockerv1.DockerMachinePoolMachineTemplate)) {
		obj := w.read(t)
		f(&obj.Spec.Template)
		w.try(t, w.Update(t.Context(), obj))
	}
	for _, tt := range []struct {
		reason string
		change func(*world, *testing.T)
		want   []string
	}{
		{"scaled up", func(w *world, t *testing.T) { w.scaled(t, replicas(3)) }, []string{"0r 1r 2", "0r 1r 2r"}},
		{"scaled to zero", func(w *world, t *testing.T) { w.scaled(t, replicas(0)) }, []string{"0rd 1rd", ""}},
		{"a new version replaces one machine after the other", func(w *world, t *testing.T) { w.scaled(t, version) }, []string{
			"0r 1r 2", "0r 1r 2v1.36.4", "0r 1r 2v1.36.4r", "0r 1rd 2v1.36.4r", "0r 2v1.36.4r 3", "0r 2v1.36.4r 3v1.36.4", "0r 2v1.36.4r 3v1.36.4r", "0rd 2v1.36.4r 3v1.36.4r", "2v1.36.4r 3v1.36.4r",
		}},
		{"so does a new image", func(w *world, t *testing.T) {
			template(w, t, func(t *dockerv1.DockerMachinePoolMachineTemplate) { t.CustomImage = "node:y" })
		}, []string{"0r 1r 2", "0r 1r 2r", "0r 1rd 2r", "0r 2r 3", "0r 2r 3r", "0rd 2r 3r", "2r 3r"}},
		{"and other images to load", func(w *world, t *testing.T) {
			template(w, t, func(t *dockerv1.DockerMachinePoolMachineTemplate) { t.PreLoadImages = []string{"b"} })
		}, []string{"0r 1r 2", "0r 1r 2r", "0r 1rd 2r", "0r 2r 3", "0r 2r 3r", "0rd 2r 3r", "2r 3r"}},
		{"and other mounts", func(w *world, t *testing.T) {
			template(w, t, func(t *dockerv1.DockerMachinePoolMachineTemplate) { t.ExtraMounts = []dockerv1.Mount{{HostPath: "/x"}} })
		}, []string{"0r 1r 2", "0r 1r 2r", "0r 1rd 2r", "0r 2r 3", "0r 2r 3r", "0rd 2r 3r", "2r 3r"}},
		{"a machine that was deleted is replaced", func(w *world, t *testing.T) { w.remediate(t, 0) }, []string{"0rd 1r 2", "1r 2", "1r 2r"}},
		{"one whose DockerMachine was deleted, too", func(w *world, t *testing.T) {
			w.try(t, w.Client.Delete(t.Context(), w.machine(t, 1)))
		}, []string{"0r 1rd 2", "0r 2", "0r 2r"}},
		{"the machine that is marked goes first", func(w *world, t *testing.T) {
			m := &clusterv1.Machine{}
			w.try(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.machine(t, 0)), m))
			m.Annotations = map[string]string{clusterv1.DeleteMachineAnnotation: ""}
			w.try(t, w.Update(t.Context(), m))
			w.scaled(t, replicas(1))
		}, []string{"0rd 1r", "1r"}},
		{"of replicas that are managed externally, none is created or deleted", func(w *world, t *testing.T) {
			w.remediate(t, 0)
			w.scaled(t, func(p *clusterv1.MachinePool) {
				version(p)
				p.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
			})
		}, []string{"0rd 1r", "1r"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, 2)
			w.settle(t)
			tt.change(w, t)
			if diff := cmp.Diff(tt.want, w.settle(t)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			pool := w.read(t)
			if got := states(pool)[clusterv1.ReadyV1Beta1Condition]; got != "True" || !pool.Status.Ready || int(pool.Status.Replicas) != len(w.dockerMachines(t)) {
				t.Errorf("Ready %s, %+v", got, pool.Status)
			}
		})
	}
}

// TestMounts checks that a machine is not replaced because only its pool says that a mount is not read-only: v1beta1 cannot.
func TestMounts(t *testing.T) {
	for _, readOnly := range []*bool{nil, ptr.To(false), ptr.To(true)} {
		pool, m := &dockerv1.DockerMachinePool{}, &dockerv1.DockerMachine{}
		pool.Spec.Template.ExtraMounts = []dockerv1.Mount{{HostPath: "/a", ContainerPath: "/b", Readonly: readOnly}}
		m.Spec.ExtraMounts = []dockerv1.Mount{{HostPath: "/a", ContainerPath: "/b"}}
		if got := outdated(&pool.Spec.Template, "spec.template", &m.Spec.DockerMachineBackendSpec, true); (got != "") != ptr.Deref(readOnly, false) {
			t.Errorf("read-only %v: outdated %q", readOnly, got)
		}
	}
}

// machine returns the DockerMachine with an ordinal.
func (w *world) machine(t *testing.T, ordinal int) *dockerv1.DockerMachine {
	t.Helper()
	obj := &dockerv1.DockerMachine{}
	w.try(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: nameOf(w.read(t), ordinal)}, obj))
	return obj
}

// remediate deletes the Machine with an ordinal, as a user or a MachineHealthCheck does.
func (w *world) remediate(t *testing.T, ordinal int) {
	t.Helper()
	m := &clusterv1.Machine{}
	w.try(t, w.Get(t.Context(), client.ObjectKeyFromObject(w.machine(t, ordinal)), m))
	w.try(t, w.Client.Delete(t.Context(), m))
}

// TestPoolOfEarlierVersion checks that an upgrade of the management cluster replaces no machines of Cluster API v1.7, and that they count.
func TestPoolOfEarlierVersion(t *testing.T) {
	w := newWorld(t, 1, func(o *poolObjects) {
		o.obj.Finalizers = []string{dockerv1.MachinePoolFinalizer}
		o.obj.Spec.ProviderID = "docker:////c-dmp-p"
		o.obj.Spec.Template.ExtraMounts = []dockerv1.Mount{{ContainerPath: "/a", HostPath: "/b"}}
	})
	old := &dockerv1.DockerMachine{}
	old.Namespace, old.Name, old.Labels = "default", "worker-abc123", map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachinePoolNameLabel: "p"}
	old.OwnerReferences = []metav1.OwnerReference{ownership.Reference(w.read(t), dockerv1.GroupVersion.WithKind(Kind), false)}
	old.Spec.ProviderID = "docker:////c-worker-abc123"
	w.try(t, w.Create(t.Context(), old))
	old.Status.Initialization.Provisioned = ptr.To(true)
	w.try(t, w.Status().Update(t.Context(), old))
	if got := w.settle(t); len(got) != 1 || len(w.dockerMachines(t)) != 1 {
		t.Errorf("machines %q", got)
	}
	pool := w.read(t)
	if diff := cmp.Diff([]string{"docker:////c-worker-abc123"}, pool.Spec.ProviderIDList); diff != "" || !pool.Status.Ready || pool.Status.Instances[0].InstanceName != "c-worker-abc123" {
		t.Errorf("%s%+v", diff, pool.Status)
	}
	w.scaled(t, func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "v1.36.4" })
	w.settle(t)
	if all := w.dockerMachines(t); len(all) != 1 || all[0].Name == old.Name {
		t.Errorf("a new version replaces it, have %v", all)
	}
}

func TestPoolDeletion(t *testing.T) {
	w := newWorld(t, 2)
	w.must(t)
	obj := w.read(t)
	w.try(t, w.Client.Delete(t.Context(), obj))
	w.must(t)
	if got := w.machines(t); got != "" {
		t.Errorf("DockerMachines without Machines are deleted directly, have %s", got)
	}

	w = newWorld(t, 2)
	w.settle(t)
	w.try(t, w.Client.Delete(t.Context(), w.read(t)))
	w.must(t)
	want := map[clusterv1.ConditionType]string{
		"Ready": "False Info Deleting", "MachinesCreated": "True", "Resized": "True", "ReplicasReady": "False Info Deleting",
	}
	if diff := cmp.Diff(want, states(w.read(t))); diff != "" || w.machines(t) != "0rd 1rd" {
		t.Errorf("machines %s, conditions -want +got:\n%s", w.machines(t), diff)
	}
	for _, m := range w.dockerMachines(t) {
		if !m.DeletionTimestamp.IsZero() {
			t.Errorf("DockerMachine %s is deleted before its Machine", m.Name)
		}
	}
	w.Cache.Freeze(&dockerv1.DockerMachineList{}, &clusterv1.MachineList{})
	w.others(t)
	w.must(t)
	if w.read(t) == nil {
		t.Error("the finalizer was removed although the cache has machines")
	}
	w.Cache.Thaw()
	w.must(t)
	if w.read(t) != nil {
		t.Error("not gone")
	}
}

// TestPoolStale checks that a cache without the last machines, deletions or changes of the pool leads to no creation or deletion.
func TestPoolStale(t *testing.T) {
	machines := []client.ObjectList{&dockerv1.DockerMachineList{}, &clusterv1.MachineList{}}
	for _, tt := range []struct {
		reason string
		stale  []client.ObjectList
		change func(*world, *testing.T)
		want   string
	}{
		{"the MachinePool was scaled down meanwhile", []client.ObjectList{&clusterv1.MachinePoolList{}}, func(w *world, t *testing.T) {
			w.scaled(t, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](1) })
			w.remediate(t, 0)
		}, "0rd 1r"},
		{"the MachinePool was deleted meanwhile", []client.ObjectList{&clusterv1.MachinePoolList{}}, func(w *world, t *testing.T) {
			w.scaled(t, func(p *clusterv1.MachinePool) { p.Finalizers = []string{"x/y"} })
			pool := &clusterv1.MachinePool{}
			w.try(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "p"}, pool))
			w.try(t, w.Client.Delete(t.Context(), pool))
			w.remediate(t, 0)
		}, "0rd 1r"},
		{"the Cluster was paused meanwhile", []client.ObjectList{&clusterv1.ClusterList{}}, func(w *world, t *testing.T) {
			cluster := &clusterv1.Cluster{}
			w.try(t, w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "c"}, cluster))
			cluster.Spec.Paused = ptr.To(true)
			w.try(t, w.Update(t.Context(), cluster))
			w.remediate(t, 0)
		}, "0rd 1r"},
		{"a machine was created by another process", machines, func(w *world, t *testing.T) {
			w.scaled(t, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](3) })
			w.byAnother(t)
		}, "0r 1r 2"},
		{"a machine is being deleted by another process", machines, func(w *world, t *testing.T) {
			w.scaled(t, func(p *clusterv1.MachinePool) { p.Spec.Replicas = ptr.To[int32](1) })
			w.byAnother(t)
		}, "0r 1rd"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, 2)
			w.settle(t)
			w.Cache.Freeze(tt.stale...)
			tt.change(w, t)
			if _, err := w.reconcile(t); err != nil && !step.IsStale(err) {
				t.Fatal(err)
			}
			if got := w.machines(t); got != tt.want {
				t.Errorf("machines %q, want %q", got, tt.want)
			}
		})
	}
}

// byAnother reconciles with another process, whose cache is up to date, and keeps the cache of this one.
func (w *world) byAnother(t *testing.T) {
	t.Helper()
	cache, runner := w.Cache, w.runner
	w.restart()
	w.must(t)
	w.Cache, w.runner = cache, runner
}

// TestPoolConflict checks that a DockerMachine of another owner is not taken over, and that another name is used.
func TestPoolConflict(t *testing.T) {
	w := newWorld(t, 1)
	other := &dockerv1.DockerMachine{}
	other.Namespace, other.Name = "default", nameOf(w.read(t), 0)
	w.try(t, w.Create(t.Context(), other))
	w.settle(t)
	if all := w.dockerMachines(t); len(all) != 2 || w.machine(t, 1) == nil {
		t.Errorf("DockerMachines %+v", all)
	}
}

// TestPoolKilled kills the process before and after every request of a pool's life, and restarts it.
func TestPoolKilled(t *testing.T) {
	for _, killBefore := range []bool{true, false} {
		for killAt := 1; ; killAt++ {
			if !livesThrough(t, fmt.Sprintf("killed at %d (before it: %v)", killAt, killBefore), killAt, killBefore) {
				if killAt < 20 {
					t.Errorf("only %d requests", killAt)
				}
				break
			}
		}
	}
}

// livesThrough creates, rolls out and deletes a pool, and reports whether the process was killed meanwhile. A pool never has more
// machines than it should have and its surge, and ends without any.
func livesThrough(t *testing.T, reason string, killAt int, killBefore bool) bool {
	t.Helper()
	w := newWorld(t, 1)
	w.count, w.killAt, w.killBefore = 0, killAt, killBefore
	most, names := 0, map[string]bool{}
	creations := w.After
	w.After = func(r fakeapi.Request, err error) error {
		if r.Verb == "create" && err == nil {
			if names[r.Name] {
				t.Errorf("%s: %s was created twice", reason, r.Name)
			}
			names[r.Name] = true
		}
		return creations(r, err)
	}
	for _, change := range []func(*clusterv1.MachinePool){
		func(*clusterv1.MachinePool) {},
		func(p *clusterv1.MachinePool) { p.Spec.Template.Spec.Version = "v1.36.4" },
	} {
		w.scaled(t, change)
		for _, had := range w.settle(t) {
			most = max(most, len(strings.Fields(had)))
		}
	}
	if got := w.machines(t); most > 2 || len(strings.Fields(got)) != 1 || !strings.Contains(got, "v1.36.4r") || strings.Contains(got, "d") {
		t.Errorf("%s: at most %d machines, in the end %q", reason, most, got)
	}
	if len(names) > 2 {
		t.Errorf("%s: %d machines were created instead of 2", reason, len(names))
	}
	w.try(t, w.Client.Delete(t.Context(), w.read(t)))
	w.settle(t)
	if w.read(t) != nil || len(w.dockerMachines(t)) > 0 {
		t.Errorf("%s: not deleted, left %q", reason, w.machines(t))
	}
	return w.count >= killAt
}
