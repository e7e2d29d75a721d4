package machine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

const starts = "False Info " + inmemoryv1.WaitingForStartupTimeoutReason

func stage(seconds int, jitter string) inmemoryv1.CommonProvisioningSettings {
	return inmemoryv1.CommonProvisioningSettings{StartupDuration: metav1.Duration{Duration: time.Duration(seconds) * time.Second},
		StartupJitter: jitter}
}

func slow(objects []client.Object) []client.Object {
	objects[1].(*inmemoryv1.InMemoryMachine).Spec.Behaviour = &inmemoryv1.InMemoryMachineBehaviour{
		VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: stage(30, "0.2")}, Node: &inmemoryv1.InMemoryNodeBehaviour{Provisioning: stage(10, "")},
		Etcd:      &inmemoryv1.InMemoryEtcdBehaviour{Provisioning: stage(10, "")},
		APIServer: &inmemoryv1.InMemoryAPIServerBehaviour{Provisioning: stage(25, "")},
	}
	return objects
}

func TestStartup(t *testing.T) {
	w := newWorld(t, append(slow(newMachine("m", true)), newCluster(), newInfra())...)
	delay := machines.Startup{Duration: 30 * time.Second, Jitter: 0.2}.Delay("inmemorymachine-m", "vm")
	if delay < 30*time.Second || delay >= 36*time.Second {
		t.Fatalf("the machine starts in %v, want 30s to 36s", delay)
	}
	all := []map[clusterv1.ConditionType]string{
		{"Ready": starts, "VMProvisioned": starts},
		{"Ready": starts, "VMProvisioned": "True", "NodeProvisioned": starts},
		{"Ready": starts, "VMProvisioned": "True", "NodeProvisioned": "True", "EtcdProvisioned": starts},
		{"Ready": starts, "VMProvisioned": "True", "NodeProvisioned": "True", "EtcdProvisioned": "True", "APIServerProvisioned": starts},
		{"Ready": "True", "VMProvisioned": "True", "NodeProvisioned": "True", "EtcdProvisioned": "True", "APIServerProvisioned": "True"},
	}
	var waits []time.Duration
	for i, want := range all {
		result := w.reconcile(t, "m")
		obj := w.read(t, "m")
		if diff := cmp.Diff(want, states(obj)); diff != "" {
			t.Fatalf("stage %d, -want +got:\n%s", i, diff)
		}
		if up := i > 0; obj.Status.Ready != up || (obj.Spec.ProviderID != nil) != up {
			t.Errorf("stage %d: ready = %v, provider ID %v; want both once the machine runs", i, obj.Status.Ready, obj.Spec.ProviderID)
		}
		waits = append(waits, result.RequeueAfter)
		if i+1 < len(all) {
			w.Clock.Step(result.RequeueAfter - time.Millisecond)
			w.reconcile(t, "m")
			w.Clock.Step(time.Millisecond)
		}
	}
	if waits[0] != delay || waits[1] != 10*time.Second || waits[4] != 0 {
		t.Errorf("waits %v, want %v for the machine, then the duration of each stage", waits, delay)
	}
}

// TestDeadWithoutNode checks that a dead machine without a Node gets one when it has power.
func TestDeadWithoutNode(t *testing.T) {
	infra := newInfra()
	infra.Annotations = map[string]string{inmemoryv1.FaultsAnnotation: `{"deadMachines": ["m"]}`}
	w := newWorld(t, append(newMachine("m", false), newCluster(), infra)...)
	w.reconcile(t, "m")
	if diff := cmp.Diff(map[clusterv1.ConditionType]string{"Ready": starts, "VMProvisioned": "True", "NodeProvisioned": starts},
		states(w.read(t, "m"))); diff != "" {
		t.Errorf("without power, -want +got:\n%s", diff)
	}
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(infra), infra))
	before := infra.DeepCopy()
	infra.Annotations = nil
	if !(&Controller{kinds: kinds.InMemory()}).opened().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: infra}) {
		t.Error("removing the fault does not trigger a reconcile")
	}
	testenv.Must(t, w.Update(t.Context(), infra))
	w.reconcile(t, "m")
	if got := states(w.read(t, "m"))["NodeProvisioned"]; got != "True" {
		t.Errorf("with power, NodeProvisioned is %q", got)
	}
}

func TestRestartWhileStarting(t *testing.T) {
	w := newWorld(t, append(slow(newMachine("m", false)), newCluster(), newInfra())...)
	delay := w.reconcile(t, "m").RequeueAfter
	w.Clock.Step(20 * time.Second)
	w.restart(t)
	if got := w.reconcile(t, "m").RequeueAfter; got != delay-20*time.Second {
		t.Errorf("remaining startup after a restart: %v, want %v", got, delay-20*time.Second)
	}
}

// TestClusterWithoutInfrastructure: a Cluster without infrastructureRef is ready, but a simulated machine is part of a simulated cluster.
func TestClusterWithoutInfrastructure(t *testing.T) {
	cluster := newCluster()
	cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{}
	w := newWorld(t, append(newMachine("m", true), cluster)...)
	again := w.reconcile(t, "m").RequeueAfter
	w.Clock.Step(again)
	w.reconcile(t, "m")
	const want = "Waiting for spec.infrastructureRef of Cluster test to name a resource of kind InMemoryCluster"
	if c := condition.Get(w.read(t, "m"), inmemoryv1.VMProvisionedCondition); c == nil || c.Message != want {
		t.Errorf("condition %v, want the message %q", c, want)
	}
}

func TestPrepare(t *testing.T) {
	bare, initialized := newCluster(), newCluster()
	bare.Status.Initialization.InfrastructureProvisioned = ptr.To(false)
	initialized.SetV1Beta1Conditions(clusterv1.Conditions{{Type: clusterv1.ControlPlaneInitializedV1Beta1Condition, Status: corev1.ConditionTrue}})
	tests := []struct {
		reason       string
		cluster      *clusterv1.Cluster
		controlPlane bool
		want         string
	}{
		{"no infrastructure", bare, true, inmemoryv1.WaitingForClusterInfrastructureReason},
		{"a worker before the control plane", newCluster(), false, inmemoryv1.WaitingControlPlaneInitializedReason},
		{"a worker without data", initialized, false, inmemoryv1.WaitingForBootstrapDataReason},
		{"a control plane machine without data", newCluster(), true, inmemoryv1.WaitingForBootstrapDataReason},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			objects := newMachine("m", tt.controlPlane)
			objects[0].(*clusterv1.Machine).Spec.Bootstrap.DataSecretName = nil
			w := newWorld(t, append(objects, tt.cluster, newInfra())...)
			again := w.reconcile(t, "m").RequeueAfter
			if len(states(w.read(t, "m"))) != 0 || again == 0 {
				t.Errorf("short waits must not be reported, have %v", states(w.read(t, "m")))
			}
			w.Clock.Step(again)
			w.reconcile(t, "m")
			if got := states(w.read(t, "m"))["VMProvisioned"]; got != "False Info "+tt.want {
				t.Errorf("VMProvisioned is %q, want reason %s", got, tt.want)
			}
			if len(w.lab.Cloud.Groups()) != 0 {
				t.Error("the workload cluster must not be opened yet")
			}
		})
	}
}

// snapshot returns the state of a workload cluster that clients see.
func snapshot(t *testing.T, w *world) map[string]string {
	t.Helper()
	group, ok := w.lab.Cloud.Group(key)
	if !ok {
		t.Fatal("the workload cluster does not exist")
	}
	out := map[string]string{"endpoint": w.lab.Server.Addresses()[key]}
	for _, resource := range []string{"nodes", "pods"} {
		stored, _ := group.List(store.Resource{Resource: resource}, "", store.Selector{})
		for _, o := range stored {
			out[resource+" "+o.Key.Name] = string(o.UID)
		}
	}
	clusters, err := etcd.Clusters(group)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range clusters {
		for _, m := range c.Members {
			out[fmt.Sprintf("etcd %d/%d member %s", i, c.ID, m.Machine.Name)] = strconv.FormatUint(m.ID, 10)
		}
	}
	return out
}

func three() []client.Object {
	objects := []client.Object{newCluster(), newInfra()}
	objects = append(objects, newMachine("cp1", true)...)
	objects = append(objects, newMachine("cp2", true)...)
	return append(objects, newMachine("w1", false)...)
}

func TestRestart(t *testing.T) {
	w := newWorld(t, three()...)
	for _, name := range []string{"cp1", "cp2", "w1"} {
		w.reconcile(t, name)
	}
	before := snapshot(t, w)
	if len(before) != 1+3+8+2 {
		t.Errorf("want an endpoint, three Nodes, eight Pods and two members, have %v", before)
	}
	w.restart(t)
	w.Clock.Step(time.Hour)
	for _, name := range []string{"w1", "cp2", "cp1"} {
		w.reconcile(t, name)
	}
	group, _ := w.lab.Cloud.Group(key)
	node, err := store.Get[corev1.Node](group, "", "w1")
	if err != nil {
		t.Fatal(err)
	}
	if ready := node.Status.Conditions[0]; !ready.LastTransitionTime.Time.Equal(now) {
		t.Errorf("the Node is ready since %s, want %s", ready.LastTransitionTime, now)
	}
	if diff := cmp.Diff(before, snapshot(t, w)); diff != "" {
		t.Errorf("workload cluster after a restart, -want +got:\n%s", diff)
	}
}

func TestRestartWithDisk(t *testing.T) {
	w := newWorld(t, three()...)
	w.disk = t.TempDir()
	w.restart(t)
	for _, name := range []string{"cp1", "cp2", "w1"} {
		w.reconcile(t, name)
	}
	group, _ := w.lab.Cloud.Group(key)
	if _, err := store.Ensure(group,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "made-by-a-user"}}); err != nil {
		t.Fatal(err)
	}
	removeMember(t, group, "cp2")
	before := snapshot(t, w)
	w.restart(t)
	// The first machine to be reconciled after the restart is being deleted.
	testenv.Must(t, w.Delete(t.Context(), w.read(t, "w1")))
	for _, name := range []string{"w1", "cp2", "cp1"} {
		w.reconcile(t, name)
	}
	delete(before, "nodes w1")
	if diff := cmp.Diff(before, snapshot(t, w)); diff != "" {
		t.Errorf("workload cluster after a restart, without the deleted machine, -want +got:\n%s", diff)
	}
	if group, _ = w.lab.Cloud.Group(key); group == nil {
		t.Fatal("the workload cluster is not open")
	}
	if _, err := store.Get[corev1.ConfigMap](group, "default", "made-by-a-user"); err != nil {
		t.Error(err)
	}
}

// A control plane that ran goes on after a restart, also if its Cluster is paused. Nothing else is reconciled.
func TestRestartWhilePaused(t *testing.T) {
	w := newWorld(t, three()...)
	w.disk = t.TempDir()
	w.restart(t)
	for _, name := range []string{"cp1", "w1"} {
		w.reconcile(t, name)
	}
	before := snapshot(t, w)
	cluster := newCluster()
	testenv.Must(t, w.Get(t.Context(), key, cluster))
	cluster.Spec.Paused = ptr.To(true)
	testenv.Must(t, w.Update(t.Context(), cluster))
	w.restart(t)
	for _, name := range []string{"w1", "cp2", "cp1"} {
		w.reconcile(t, name)
	}
	if diff := cmp.Diff(before, snapshot(t, w)); diff != "" {
		t.Errorf("workload cluster after a restart, -want +got:\n%s", diff)
	}
	if endpoint, open := w.lab.Server.Endpoint(key); !open || !endpoint.HasServer("cp1") || !endpoint.HasEtcd("cp1") || !endpoint.HasCredentials() {
		t.Error("the control plane does not run")
	}
	group, _ := w.lab.Cloud.Group(key)
	testenv.Must(t, group.DeleteMachine("cp1"))
	w.restart(t)
	w.reconcile(t, "cp1")
	if group, _ = w.lab.Cloud.Group(key); group.HasMachine("cp1", w.read(t, "cp1").UID) {
		t.Error("a machine that is gone came back while its Cluster is paused")
	}
}

// removeMember removes the member of a machine.
func removeMember(t *testing.T, group *cloud.Group, name string) {
	t.Helper()
	clusters, err := etcd.Clusters(group)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		for _, m := range c.Members {
			if m.Machine.Name != name {
				continue
			}
			testenv.Must(t, etcd.Remove(group, c.ID, m.ID))
		}
	}
}

func TestDeletionInEveryOrder(t *testing.T) {
	names := []string{"cp1", "cp2", "w1", "infra"}
	for _, order := range permutations(names) {
		w := newWorld(t, three()...)
		for _, name := range names[:3] {
			w.reconcile(t, name)
		}
		for i, name := range order {
			if name == "infra" {
				testenv.Must(t, w.Delete(t.Context(), newInfra()))
				testenv.Must(t, w.lab.Close(key, object.UID("InMemoryCluster", "infra")))
				continue
			}
			testenv.Must(t, w.Delete(t.Context(), w.read(t, name)))
			w.reconcile(t, name)
			err := w.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: name}, &inmemoryv1.InMemoryMachine{})
			if !apierrors.IsNotFound(err) {
				t.Fatalf("order %v: %s still exists: %v", order, name, err)
			}
			if slices.Contains(order[:i], "infra") {
				continue
			}
			for what := range snapshot(t, w) {
				// An etcd member remains until it is removed.
				if what != "endpoint" && !strings.Contains(what, "member") && what[len(what)-len(name):] == name {
					t.Errorf("order %v: %s still exists after its machine", order, what)
				}
			}
		}
		if len(w.lab.Cloud.Groups()) != 0 || len(w.lab.Server.Addresses()) != 0 {
			t.Errorf("order %v: left groups %v, endpoints %v", order, w.lab.Cloud.Groups(), w.lab.Server.Addresses())
		}
	}
}

// TestMachinesOfOthersAreKept matters because users can write the label with a machine's cluster.
func TestMachinesOfOthersAreKept(t *testing.T) {
	w := newWorld(t, three()...)
	w.reconcile(t, "w1")
	before := snapshot(t, w)
	other := newMachine("w1", false)[1].(*inmemoryv1.InMemoryMachine)
	other.UID = "of another cluster"
	group, _ := w.lab.Cloud.Group(key)
	c := &Controller{kinds: kinds.InMemory(), lab: w.lab}
	testenv.Must(t, c.removeOwn(group, key, etcd.Machine{Name: other.Name, UID: other.UID}))
	if diff := cmp.Diff(before, snapshot(t, w)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStartupOf(t *testing.T) {
	for _, test := range []struct {
		reason, jitter string
		duration       time.Duration
		fails          bool
	}{
		{"a number", "0.2", time.Second, false},
		{"huge, but finite", "1e308", time.Hour, false},
		{"the longest duration", "1", time.Duration(1<<63 - 1), false},
		{"infinite", "Inf", time.Second, true},
		{"NaN", "NaN", time.Second, true},
		{"negative", "-1", time.Second, true},
		{"negative duration", "", -time.Second, true},
		{"words", "a bit", time.Second, true},
	} {
		obj := newMachine("m", false)[1].(*inmemoryv1.InMemoryMachine)
		obj.Spec.Behaviour = &inmemoryv1.InMemoryMachineBehaviour{VM: &inmemoryv1.InMemoryVMBehaviour{
			Provisioning: inmemoryv1.CommonProvisioningSettings{
				StartupDuration: metav1.Duration{Duration: test.duration}, StartupJitter: test.jitter}}}
		of, _ := kinds.InMemory().MachineOf(obj)
		delay, err := startupOf(of, "vm")
		if (err != nil) != test.fails || delay < 0 || err == nil && delay < time.Second {
			t.Errorf("%s: %s, %v", test.reason, delay, err)
		}
	}
}

func permutations(of []string) [][]string {
	if len(of) < 2 {
		return [][]string{of}
	}
	var out [][]string
	for i := range of {
		for _, rest := range permutations(slices.Concat(of[:i], of[i+1:])) {
			out = append(out, append([]string{of[i]}, rest...))
		}
	}
	return out
}

func TestMachinesDoNotReopenDeletedCluster(t *testing.T) {
	infra := newInfra()
	infra.Finalizers = []string{inmemoryv1.ClusterFinalizer}
	w := newWorld(t, append(newMachine("m", true), newCluster(), infra)...)
	w.reconcile(t, "m")
	testenv.Must(t, w.Delete(t.Context(), infra))
	testenv.Must(t, w.lab.Close(key, object.UID("InMemoryCluster", "infra")))
	w.reconcile(t, "m")
	if len(w.lab.Cloud.Groups()) != 0 || len(w.lab.Server.Addresses()) != 0 {
		t.Error("a machine reopened the workload cluster that its InMemoryCluster closed")
	}
}

func TestTriggersOfMachines(t *testing.T) {
	w := newWorld(t, three()...)
	c := &Controller{Clients: step.Clients{Client: w.Client}, kinds: kinds.InMemory()}
	ready, unready := newInfra(), newInfra()
	ready.Status.Ready = true
	for _, test := range []struct {
		reason        string
		before, after *inmemoryv1.InMemoryCluster
		want          bool
	}{
		{"the workload cluster was opened", unready, ready, true},
		{"no change", ready, ready, false},
		{"not open", unready, unready, false},
	} {
		if got := (&Controller{kinds: kinds.InMemory()}).opened().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v, want %v", test.reason, got, test.want)
		}
	}
	ready.Labels = map[string]string{clusterv1.ClusterNameLabel: "test"}
	if got := len(c.ofInfrastructure(t.Context(), ready)); got != 3 {
		t.Errorf("%d machines were found, want 3", got)
	}
}
