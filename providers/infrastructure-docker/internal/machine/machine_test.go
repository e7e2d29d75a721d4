package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1beta1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

type conditionStates = map[clusterv1.ConditionType]string

const waitsForData = "False Info WaitingForBootstrapData: Waiting for the bootstrap data of Machine m"

// expect compares conditions; Ready is only compared if want has it.
func expect(t *testing.T, when string, w *world, want conditionStates) {
	t.Helper()
	got := states(w.read(t))
	if _, ok := want[clusterv1.ReadyV1Beta1Condition]; !ok {
		delete(got, clusterv1.ReadyV1Beta1Condition)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s, conditions -want +got:\n%s", when, diff)
	}
}

func TestWorker(t *testing.T) {
	w := newWorld(t, objects()...)
	w.present(t)
	w.must(t)
	expect(t, "before its Node exists", w, conditionStates{"Ready": "True", "ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if m := w.read(t); isProvisioned(kinds.OfDockerMachine(m)) || !node.Bootstrapped(kinds.OfDockerMachine(m)) || m.Spec.ProviderID != "" {
		t.Errorf("before its Node exists: %+v %+v", m.Spec, m.Status)
	}
	w.joined(t, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: "NoSchedule"}, {Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"}}
	})
	w.must(t)
	m := w.read(t)
	want := dockerv1.DockerMachineStatus{
		Initialization: dockerv1.InitializationStatus{Provisioned: ptr.To(true)},
		Addresses: []clusterv1.MachineAddress{
			{Type: "Hostname", Address: container}, {Type: "InternalIP", Address: "172.18.0.3"}, {Type: "ExternalIP", Address: "172.18.0.3"},
		},
	}
	want.Deprecated = &dockerv1.DeprecatedStatus{V1Beta1: &dockerv1.V1Beta1DeprecatedStatus{Conditions: m.GetV1Beta1Conditions()}}
	want.Addresses[1].Address = m.Status.Addresses[1].Address // Chosen by the runtime.
	want.Addresses[2].Address = m.Status.Addresses[1].Address
	if diff := cmp.Diff(want, m.Status); diff != "" || m.Spec.ProviderID != "docker:////c-m" {
		t.Errorf("provider ID %v, status -want +got:\n%s", m.Spec.ProviderID, diff)
	}
	n := w.node(t)
	if diff := cmp.Diff(corev1.NodeSpec{ProviderID: "docker:////c-m", Taints: []corev1.Taint{{Key: "node.cluster.x-k8s.io/uninitialized", Effect: "NoSchedule"}}}, n.Spec); diff != "" {
		t.Errorf("the Node, -want +got:\n%s", diff)
	}
	const metadata, status = "patch DockerMachine m", "patch DockerMachine/status m"
	wantWrites := []string{metadata, status, status, "patch Node c-m", metadata, status}
	if diff := cmp.Diff(wantWrites, w.Writes); diff != "" || !slices.Equal(w.LiveReads, []string{"get Cluster c", "get Secret data"}) {
		t.Errorf("live reads %v, writes -want +got:\n%s", w.LiveReads, diff)
	}
	if got, want := w.changing(), []string{"EnsureNetwork kind", "Create c-m", "Exec c-m"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	if e := w.Events(); len(e) > 0 {
		t.Errorf("events %v", e)
	}
	w.Writes, w.LiveReads = nil, nil
	w.must(t)
	if got := append(w.Writes, w.LiveReads...); len(got) > 0 {
		t.Errorf("a machine that is ready costs requests: %v", got)
	}
}

// present makes the image present, so that it does not have to be pulled.
func (w *world) present(t *testing.T) {
	t.Helper()
	if err := w.runtime.EnsureImage(t.Context(), image); err != nil {
		t.Fatal(err)
	}
	w.runtime.Forget()
	w.count = 0
}

func TestControlPlane(t *testing.T) {
	w := newWorld(t, objects(controlPlane)...)
	w.present(t)
	w.must(t)
	expect(t, "before the load balancer forwards", w, conditionStates{"ContainerProvisioned": "True"})
	if m := w.read(t); len(m.Status.Addresses) != 3 {
		t.Errorf("the load balancer needs addresses, have %v", m.Status.Addresses)
	}
	if slices.Contains(w.changing(), "Exec c-m") {
		t.Error("kubeadm ran before the load balancer forwards to its API server")
	}
	w.change(t, func(m *dockerv1.DockerMachine) { m.Status.LoadBalancerConfigured = true })
	w.joined(t)
	w.must(t)
	expect(t, "after all", w, conditionStates{"Ready": "True", "ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if m := w.read(t); !isProvisioned(kinds.OfDockerMachine(m)) || !m.Status.LoadBalancerConfigured {
		t.Errorf("%+v", m.Status)
	}
	if got, want := w.changing(), []string{"EnsureNetwork kind", "Create c-m", "Exec c-m"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

func TestPrepare(t *testing.T) {
	noData := func(owner *clusterv1.Machine, _ *dockerv1.DockerMachine) { owner.Spec.Bootstrap.DataSecretName = nil }
	for _, tt := range []struct {
		reason  string
		cluster func(*clusterv1.Cluster)
		with    []func(*clusterv1.Machine, *dockerv1.DockerMachine)
		want    string
	}{
		{"no infrastructure", func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = ptr.To(false) }, nil, "False Info WaitingForClusterInfrastructure: Waiting for the infrastructure of Cluster c"},
		{"a worker before the control plane", func(*clusterv1.Cluster) {}, []func(*clusterv1.Machine, *dockerv1.DockerMachine){noData}, "False Info WaitingForControlPlaneAvailable: Waiting for the control plane to be initialized"},
		{"a worker without data", func(c *clusterv1.Cluster) {
			condition.Set(c, condition.True(clusterv1.ControlPlaneInitializedV1Beta1Condition))
		},
			[]func(*clusterv1.Machine, *dockerv1.DockerMachine){noData}, waitsForData},
		{"a control plane machine without data", func(*clusterv1.Cluster) {}, []func(*clusterv1.Machine, *dockerv1.DockerMachine){noData, controlPlane}, waitsForData},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			all := objects(tt.with...)
			all[0] = newCluster(tt.cluster)
			w := newWorld(t, all...)
			w.must(t)
			expect(t, tt.reason, w, conditionStates{"ContainerProvisioned": tt.want})
			if len(w.runtime.Calls()) > 0 || len(w.read(t).Finalizers) > 0 {
				t.Errorf("calls %v", w.runtime.Calls())
			}
		})
	}
	t.Run("a new machine does not report short waits", func(t *testing.T) {
		all := objects(noData, func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) { m.CreationTimestamp = metav1.NewTime(now) })
		w := newWorld(t, all...)
		if result := w.must(t); result.RequeueAfter != 2*time.Second || len(w.Writes) > 0 {
			t.Errorf("%v, writes %v", result, w.Writes)
		}
	})
	t.Run("no owners", func(t *testing.T) {
		w := newWorld(t, objects()[1:]...)
		w.must(t)
		if len(w.Writes) > 0 || len(w.runtime.Calls()) > 0 {
			t.Errorf("writes %v, calls %v", w.Writes, w.runtime.Calls())
		}
	})
}

// TestKilled kills the process before and after every request and call, and restarts it.
func TestKilled(t *testing.T) {
	for _, role := range []string{"worker", "control plane"} {
		for _, killBefore := range []bool{true, false} {
			for killAt := 1; ; killAt++ {
				reason := fmt.Sprintf("%s, killed at %d (before it: %v)", role, killAt, killBefore)
				if !killed(t, reason, role == "control plane", killAt, killBefore) {
					if killAt < 10 {
						t.Errorf("%s: only %d calls", reason, killAt)
					}
					break
				}
			}
		}
	}
}

// killed runs the life of a machine, and reports whether the process was killed in it.
func killed(t *testing.T, reason string, isControlPlane bool, killAt int, killBefore bool) (happened bool) {
	t.Helper()
	var with []func(*clusterv1.Machine, *dockerv1.DockerMachine)
	if isControlPlane {
		with = append(with, controlPlane)
	}
	w := newWorld(t, objects(with...)...)
	w.joined(t)
	w.count, w.killAt, w.killBefore = 0, killAt, killBefore
	persist := func(done func() bool) {
		for range 10 {
			_, err := w.run(t)
			if w.dead {
				happened = true
				w.restart(t)
				continue
			}
			if err == nil && done() {
				return
			}
			w.pass(time.Minute)
		}
		t.Fatalf("%s: does not get on", reason)
	}
	if isControlPlane {
		persist(func() bool { return len(w.read(t).Status.Addresses) > 0 })
		w.change(t, func(m *dockerv1.DockerMachine) { m.Status.LoadBalancerConfigured = true })
	}
	persist(func() bool { return isProvisioned(kinds.OfDockerMachine(w.read(t))) })
	expect(t, reason, w, conditionStates{"Ready": "True", "ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if got := w.runtime.Containers(); !slices.Equal(got, []string{container}) {
		t.Errorf("%s: containers %v", reason, got)
	}
	for id, a := range w.attempts {
		if a.number != 1 || len(w.attempts) > 1 {
			t.Errorf("%s: %d attempts to bootstrap in container %s", reason, a.number, id)
		}
	}
	w.remove(t)
	w.Server.Clock.SetTime(time.Now().Add(time.Hour)) // The deletion has the time of the real clock.
	persist(func() bool { return w.gone(t) })
	if got := w.runtime.Containers(); len(got) > 0 {
		t.Errorf("%s: left %v", reason, got)
	}
	return happened
}

func TestBootstrapFails(t *testing.T) {
	w := newWorld(t, objects()...)
	w.present(t)
	w.joined(t)
	log := "[preflight] Running pre-flight checks\ntoken abcdef.0123456789abcdef, password: hunter2 https://user:pw@example.com/x\n" +
		"error execution phase preflight: couldn't reach 10.0.0.1\nTo see the stack trace of this error execute with --v=5 or higher\nFailed: exit code 1\n"
	w.outcome = func(n int) (int, bool, string, string) {
		if n < 3 {
			return 1, false, "kubeadm join", log
		}
		return 0, true, "", ""
	}
	failed := func(n int) string {
		return fmt.Sprintf("False Warning BootstrapFailed: Attempt %d failed: kubeadm join failed with exit code 1: error execution phase preflight: couldn't reach 10.0.0.1", n)
	}
	result := w.must(t)
	expect(t, "after the first attempt", w, conditionStates{"Ready": "False Warning BootstrapFailed: 1 of 2 completed", "ContainerProvisioned": "True", "BootstrapExecSucceeded": failed(1)})
	if result.RequeueAfter != firstRetry {
		t.Errorf("retry in %s, want %s", result.RequeueAfter, firstRetry)
	}
	events := w.Events()
	if len(events) != 1 || !strings.HasPrefix(events[0], `Warning BootstrapFailed Attempt 1 failed: kubeadm join failed with exit code 1. See "docker exec c-m cat /var/log/cluster-api-bootstrap.log", which ends with:`) {
		t.Errorf("events %q", events)
	}
	for _, secret := range []string{"0123456789abcdef", "hunter2", "pw@"} {
		if strings.Contains(fmt.Sprint(events, w.read(t).Status), secret) {
			t.Errorf("event or status contains %q", secret)
		}
	}
	w.restart(t)
	w.must(t)
	expect(t, "after a restart", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": failed(1)})
	if e := w.Events(); len(e) > 0 {
		t.Errorf("events for what was reported before: %q", e)
	}
	for n := 2; n <= 3; n++ {
		w.pass(lastRetry)
		w.must(t)
		if n == 2 {
			expect(t, "after the second attempt", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": failed(2)})
		}
	}
	expect(t, "after the third attempt", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if m := w.read(t); !isProvisioned(kinds.OfDockerMachine(m)) {
		t.Errorf("%+v", m.Status)
	}
	if got := w.attempts["c-m1"].number; got != 3 {
		t.Errorf("%d attempts", got)
	}
}

func TestBootstrapWithProblems(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		prepare func(w *world, data *corev1.Secret)
		want    string
		event   string
	}{
		{reason: "what follows kubeadm fails: the Node works, and is kept", prepare: func(w *world, _ *corev1.Secret) {
			w.outcome = func(int) (int, bool, string, string) { return 7, true, "command 3 of 3 in runcmd", "no" }
		}, want: "True", event: "Warning BootstrapFailed The machine has bootstrapped, but then command 3 of 3 in runcmd failed with exit code 7."},
		{reason: "time limit", prepare: func(w *world, _ *corev1.Secret) {
			w.outcome = func(int) (int, bool, string, string) { return 124, false, "kubeadm join", "waiting\n" }
		}, want: "False Warning BootstrapFailed: Attempt 1 failed: kubeadm join did not end within 5m0s: waiting", event: "Warning BootstrapFailed Attempt 1"},
		{reason: "data that cannot be interpreted", prepare: func(_ *world, data *corev1.Secret) { data.Data["value"] = []byte("s3cret") },
			want:  "False Warning BootstrapFailed: reading key value of Secret default/data: the bootstrap data is not a cloud-config: its first line must be #cloud-config, after an optional template header",
			event: "Warning BootstrapFailed reading key value of Secret default/data: the bootstrap data is not a cloud-config"},
		{reason: "no data", prepare: func(_ *world, data *corev1.Secret) { data.Name = "other" },
			want: `False Warning BootstrapFailed: reading bootstrap data Secret default/data: secrets "data" not found`, event: `Warning BootstrapFailed reading bootstrap data Secret default/data: secrets "data" not found`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := &world{}
			all := objects()
			tt.prepare(w, all[1].(*corev1.Secret))
			outcome := w.outcome
			w = newWorld(t, all...)
			if outcome != nil {
				w.outcome = outcome
			}
			w.present(t)
			w.must(t)
			expect(t, tt.reason, w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": tt.want})
			events := w.Events()
			if tt.event == "" && len(events) > 0 || tt.event != "" && (len(events) != 1 || !strings.HasPrefix(events[0], tt.event)) {
				t.Errorf("events %q", events)
			}
		})
	}
}

// provisioned returns a world whose machine is ready.
func provisioned(t *testing.T, with ...func(*clusterv1.Machine, *dockerv1.DockerMachine)) *world {
	t.Helper()
	w := newWorld(t, objects(with...)...)
	w.present(t)
	w.joined(t)
	w.must(t)
	if w.read(t).Status.Addresses != nil && !isProvisioned(kinds.OfDockerMachine(w.read(t))) {
		w.change(t, func(m *dockerv1.DockerMachine) { m.Status.LoadBalancerConfigured = true })
		w.must(t)
	}
	if !isProvisioned(kinds.OfDockerMachine(w.read(t))) {
		t.Fatalf("%+v", w.read(t).Status)
	}
	w.runtime.Forget()
	return w
}

func TestContainerRemovedByOthers(t *testing.T) {
	w := provisioned(t)
	if err := w.runtime.Remove(t.Context(), container); err != nil {
		t.Fatal(err)
	}
	w.runtime.Forget()
	w.must(t)
	w.must(t)
	const gone = "False Error ContainerDeleted: Container c-m was removed: delete the Machine to replace it"
	expect(t, "removed", w, conditionStates{"Ready": gone, "ContainerProvisioned": gone, "BootstrapExecSucceeded": "True"})
	if m := w.read(t); !isProvisioned(kinds.OfDockerMachine(m)) || m.Spec.ProviderID == "" {
		t.Errorf("%+v %+v", m.Spec, m.Status)
	}
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
	if e := w.Events(); len(e) != 1 || e[0] != "Warning ContainerDeleted Container c-m was removed: delete the Machine to replace it" {
		t.Errorf("events %q", e)
	}
}

func TestContainerStopped(t *testing.T) {
	w := provisioned(t)
	w.runtime.Kill(container, 137)
	w.must(t)
	expect(t, "stopped", w, conditionStates{
		"ContainerProvisioned":   `False Warning ContainerProvisioningFailed: Container c-m does not run, exit code 137: start it with "docker start c-m", or delete the Machine to replace it`,
		"BootstrapExecSucceeded": "True",
	})
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v: the failure must stay visible", got)
	}
	if err := w.runtime.Start(t.Context(), container); err != nil {
		t.Fatal(err)
	}
	w.runtime.Move(container, "172.18.9.9")
	w.must(t)
	expect(t, "started by a user", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if got := w.read(t).Status.Addresses[1].Address; got != "172.18.9.9" {
		t.Errorf("address %s", got)
	}
}

// TestContainerStopsEarly: a container that stops before it was bootstrapped is started again, but not in a loop.
func TestContainerStopsEarly(t *testing.T) {
	w := newWorld(t, objects(controlPlane)...)
	w.present(t)
	w.must(t)
	w.runtime.Kill(container, 3)
	w.runtime.Forget()
	state, err := w.runtime.Inspect(t.Context(), container)
	if err != nil {
		t.Fatal(err)
	}
	w.Server.Clock.SetTime(state.Started.Add(time.Second))
	if _, err := w.run(t); err == nil {
		t.Fatal("no error")
	}
	expect(t, "stopped", w, conditionStates{"ContainerProvisioned": `False Warning ContainerProvisioningFailed: container c-m exited with code 3 after its start: see "docker logs c-m"`})
	w.Server.Clock.SetTime(state.Started.Add(restartDelay))
	w.must(t)
	expect(t, "started", w, conditionStates{"ContainerProvisioned": "True"})
	if got := w.changing(); !slices.Equal(got, []string{"Start c-m"}) {
		t.Errorf("calls %v", got)
	}
}

// TestInterruptedCreation: a container that was never started may lack its files.
func TestInterruptedCreation(t *testing.T) {
	w := newWorld(t, objects(controlPlane)...)
	w.present(t)
	w.must(t)
	created, _ := w.runtime.Created(container)
	w.runtime.Put(engine.State{Name: container, Image: image, Labels: created.Labels})
	w.runtime.Forget()
	w.must(t)
	if got, want := w.changing(), []string{"Remove c-m", "EnsureNetwork kind", "Create c-m"}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
}

func TestContainersOfOthers(t *testing.T) {
	for _, tt := range []struct {
		reason string
		labels map[string]string
		want   string
	}{
		{"something else", nil, "something other than this provider"},
		{"a machine of kind, or of an earlier version that this object did not have", map[string]string{"io.x-k8s.kind.cluster": "c", "io.x-k8s.kind.role": "worker"}, "something other than this provider"},
		{"a machine in another namespace", map[string]string{"io.x-k8s.kind.cluster": "c", "docker.cluster.x-k8s.io/kind": "DockerMachine", "docker.cluster.x-k8s.io/namespace": "other", "docker.cluster.x-k8s.io/name": "m"}, "DockerMachine other/m"},
		{"an earlier object of this name", map[string]string{"io.x-k8s.kind.cluster": "c", "docker.cluster.x-k8s.io/kind": "DockerMachine", "docker.cluster.x-k8s.io/namespace": "default", "docker.cluster.x-k8s.io/name": "m", "docker.cluster.x-k8s.io/identity": "x"},
			"a deleted DockerMachine default/m, or one of another management cluster"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, objects()...)
			w.runtime.Put(engine.State{Name: container, Labels: tt.labels, Running: true})
			if _, err := w.run(t); err == nil {
				t.Fatal("no error")
			}
			expect(t, tt.reason, w, conditionStates{
				"ContainerProvisioned": `False Warning ContainerProvisioningFailed: container "c-m" belongs to ` + tt.want + ": remove it, or use another name for this object",
			})
			w.remove(t)
			w.must(t)
			if got := w.runtime.Containers(); !w.gone(t) || !slices.Equal(got, []string{container}) {
				t.Errorf("object gone: %v, containers %v", w.gone(t), got)
			}
		})
	}
}

// TestBootstrappedInV1Beta1: a client of v1beta1 has said that the bootstrap data has run, as it restores a backup.
func TestBootstrappedInV1Beta1(t *testing.T) {
	w := newWorld(t, objects(func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) {
		older := &dockerv1beta1.DockerMachine{ObjectMeta: m.ObjectMeta, Spec: dockerv1beta1.DockerMachineSpec{Bootstrapped: true}}
		testenv.Must(t, conversion.Shared().Convert(t.Context(), older, m))
	})...)
	w.present(t)
	w.must(t)
	expect(t, "without its container", w, conditionStates{
		"ContainerProvisioned": "False Error ContainerDeleted: Container c-m was removed: delete the Machine to replace it",
	})
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
}

// TestContainersOfEarlierVersions: a machine that Cluster API v1.7 created, or that was moved here.
func TestContainersOfEarlierVersions(t *testing.T) {
	w := newWorld(t, objects(func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) {
		m.Spec.ProviderID = "docker:////c-old"
	})...)
	w.runtime.Put(engine.State{Name: "c-old", Labels: map[string]string{"io.x-k8s.kind.cluster": "c", "io.x-k8s.kind.role": "worker"}, Running: true, IPv4: "172.18.0.9"})
	if err := w.workload.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "c-old"}, Spec: corev1.NodeSpec{ProviderID: "docker:////c-old"}}); err != nil {
		t.Fatal(err)
	}
	w.must(t)
	expect(t, "taken over", w, conditionStates{"Ready": "True", "ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if m := w.read(t); !isProvisioned(kinds.OfDockerMachine(m)) || m.Status.Addresses[1].Address != "172.18.0.9" {
		t.Errorf("%+v", m.Status)
	}
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
	if got := w.named(t.Context(), "c", "c-old"); len(got) != 1 {
		t.Errorf("events of its container are not mapped to it: %v", got)
	}
	if got := w.named(t.Context(), "c", "c-other"); len(got) != 0 {
		t.Errorf("events of another container are mapped to it: %v", got)
	}
	w.remove(t)
	w.must(t)
	if got := w.runtime.Containers(); !w.gone(t) || len(got) > 0 {
		t.Errorf("object gone: %v, containers %v", w.gone(t), got)
	}
}

func TestRuntimeFails(t *testing.T) {
	down := enginetest.Failure(engine.Unavailable, "is the daemon running?")
	t.Run("a new machine reports it", func(t *testing.T) {
		w := newWorld(t, objects()...)
		w.runtime.Fail = func(string, string) error { return down }
		if _, err := w.run(t); !errors.Is(err, down) {
			t.Fatal(err)
		}
		expect(t, "down", w, conditionStates{"ContainerProvisioned": "False Warning ContainerProvisioningFailed: cannot call the runtime: is the daemon running?"})
	})
	t.Run("it says nothing about a machine that is ready", func(t *testing.T) {
		w := provisioned(t)
		w.runtime.Fail = func(string, string) error { return down }
		if _, err := w.run(t); !errors.Is(err, down) {
			t.Fatal(err)
		}
		expect(t, "down", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	})
	t.Run("an image that does not exist", func(t *testing.T) {
		w := newWorld(t, objects()...)
		w.runtime.Absent = map[string]bool{image: true}
		w.must(t)
		expect(t, "absent", w, conditionStates{"ContainerProvisioned": `False Warning ContainerProvisioningFailed: cannot find "kindest/node:v1.36.3": not found`})
		if e := w.Events(); len(e) != 1 || e[0] != `Warning ContainerProvisioningFailed cannot find "kindest/node:v1.36.3": not found` {
			t.Errorf("events %q", e)
		}
		w.runtime.Absent = nil
		w.pass(time.Minute)
		w.must(t)
		expect(t, "present", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	})
	t.Run("a command is lost: its result is asked for again", func(t *testing.T) {
		w := newWorld(t, objects()...)
		w.present(t)
		fails := true
		w.runtime.OnExec = func(name string, c engine.Command) error {
			err := w.exec(name, c)
			if fails {
				return down
			}
			return err
		}
		w.must(t)
		if node.Bootstrapped(kinds.OfDockerMachine(w.read(t))) {
			t.Error("the result is unknown")
		}
		fails = false
		w.all(t.Context()) // The runtime is back.
		w.must(t)
		if m := w.read(t); !node.Bootstrapped(kinds.OfDockerMachine(m)) || w.attempts["c-m1"].number != 1 {
			t.Errorf("bootstrapped %v, attempts %d", node.Bootstrapped(kinds.OfDockerMachine(m)), w.attempts["c-m1"].number)
		}
	})
}

func TestPreload(t *testing.T) {
	w := newWorld(t, objects(func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) { m.Spec.PreLoadImages = []string{"a:1", "b:2"} })...)
	w.present(t)
	w.runtime.Absent = map[string]bool{"b:2": true}
	w.must(t)
	expect(t, "absent", w, conditionStates{"ContainerProvisioned": `False Warning ContainerProvisioningFailed: loading image b:2 into container c-m: cannot find "b:2": not found`})
	w.runtime.Absent = nil
	w.pass(time.Minute)
	w.must(t)
	expect(t, "present", w, conditionStates{"ContainerProvisioned": "True", "BootstrapExecSucceeded": "True"})
	if calls := w.changing(); !slices.Contains(calls, "SaveImage a:1") || !slices.Contains(calls, "SaveImage b:2") {
		t.Errorf("calls %v", calls)
	}
}

func TestNode(t *testing.T) {
	for _, tt := range []struct {
		reason string
		away   error
		node   *corev1.NodeSpec
		ready  bool
		fails  bool
		again  time.Duration
	}{
		{reason: "not connected: an event follows", away: fmt.Errorf("%w: refused", remote.ErrNotConnected)},
		{reason: "another error", away: errors.New("x"), fails: true},
		{reason: "no Node yet: an event follows"},
		{reason: "a Node", node: &corev1.NodeSpec{}, ready: true},
		{reason: "a Node whose provider ID was set before a crash", node: &corev1.NodeSpec{ProviderID: "docker:////c-m"}, ready: true},
		{reason: "the Node of another machine", node: &corev1.NodeSpec{ProviderID: "docker:////c-x"}, fails: true},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, objects()...)
			w.present(t)
			w.workload.Err = tt.away
			if tt.node != nil {
				w.joined(t, func(n *corev1.Node) { n.Spec = *tt.node })
			}
			result, err := w.run(t)
			if (err != nil) != tt.fails || result.RequeueAfter != tt.again {
				t.Errorf("%v, %v", result, err)
			}
			if m := w.read(t); isProvisioned(kinds.OfDockerMachine(m)) != tt.ready || (m.Spec.ProviderID != "") != tt.ready || !node.Bootstrapped(kinds.OfDockerMachine(m)) {
				t.Errorf("%+v %+v", m.Spec, m.Status)
			}
		})
	}
}

// TestStale reconciles with copies of the object that the cache had before.
func TestStale(t *testing.T) {
	for _, tt := range []struct {
		reason string
		since  func(t *testing.T, w *world)
	}{
		{"it was claimed by another leader, and its container was removed since", func(t *testing.T, w *world) {
			w.change(t, func(m *dockerv1.DockerMachine) {
				m.Finalizers, m.Spec.ProviderID = []string{dockerv1.MachineFinalizer}, "docker:////c-m"
			})
		}},
		{"it was deleted", func(t *testing.T, w *world) {
			w.remove(t)
		}},
	} {
		for _, claimed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, claimed in the cache: %v", tt.reason, claimed), func(t *testing.T) {
				w := newWorld(t, objects(func(_ *clusterv1.Machine, m *dockerv1.DockerMachine) {
					if claimed {
						m.Finalizers = []string{dockerv1.MachineFinalizer}
						m.Annotations = map[string]string{"docker.cluster.x-k8s.io/identity": string(object.UID("DockerMachine", "m"))}
					}
				})...)
				w.present(t)
				w.Cache.Show(w.read(t))
				tt.since(t, w)
				for range 3 {
					_, _ = w.reconcile(t) // A stale error, or none.
				}
				if got := w.runtime.Containers(); len(got) > 0 {
					t.Errorf("created %v", got)
				}
			})
		}
	}
}

func TestRemoveWaitsForLoadBalancer(t *testing.T) {
	w := provisioned(t, controlPlane)
	w.remove(t)
	deleted := w.read(t).DeletionTimestamp
	w.Server.Clock.SetTime(deleted.Add(time.Second))
	if result := w.must(t); result.RequeueAfter != drainTimeout-time.Second {
		t.Errorf("%+v", result)
	}
	expect(t, "deleting", w, conditionStates{"ContainerProvisioned": "False Info Deleting", "BootstrapExecSucceeded": "True"})
	if got := w.changing(); len(got) > 0 {
		t.Errorf("calls %v", got)
	}
	w.change(t, func(m *dockerv1.DockerMachine) { m.Status.LoadBalancerConfigured = false })
	w.must(t)
	if got := w.runtime.Containers(); !w.gone(t) || len(got) > 0 {
		t.Errorf("object gone: %v, containers %v", w.gone(t), got)
	}
}

func TestEvents(t *testing.T) {
	w := provisioned(t)
	cluster := types.NamespacedName{Namespace: "default", Name: "c"}
	ready := len(w.joining(t.Context(), cluster)) + len(w.ofNode(t.Context(), cluster, w.node(t)))
	w.change(t, func(m *dockerv1.DockerMachine) { m.Status.Initialization.Provisioned = nil })
	counts := map[string]int{
		"a Node, of machines that are ready":    ready,
		"connection":                            len(w.joining(t.Context(), cluster)),
		"Node":                                  len(w.ofNode(t.Context(), cluster, w.node(t))),
		"Node of another name":                  len(w.ofNode(t.Context(), cluster, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}})),
		"Node of another cluster":               len(w.ofNode(t.Context(), types.NamespacedName{Namespace: "default", Name: "x"}, w.node(t))),
		"Cluster":                               len(w.ofCluster(t.Context(), newCluster())),
		"the stream of containers was restored": len(w.all(t.Context())),
		"Machine":                               len(watch.Infrastructure("DockerMachine")(t.Context(), &clusterv1.Machine{Spec: clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "DockerMachine", Name: "m"}}})),
		"Machine of another provider":           len(watch.Infrastructure("DockerMachine")(t.Context(), &clusterv1.Machine{Spec: clusterv1.MachineSpec{InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "X", Name: "m"}}})),
	}
	want := map[string]int{
		"a Node, of machines that are ready": 0, "connection": 1, "Node": 1, "Node of another name": 0, "Node of another cluster": 0,
		"Cluster": 1, "the stream of containers was restored": 1, "Machine": 1, "Machine of another provider": 0,
	}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	tainted := w.node(t)
	tainted.Spec.Taints = []corev1.Taint{{Key: "x"}}
	busy := w.node(t)
	busy.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
	if !nodeChanged(w.node(t), tainted) || nodeChanged(w.node(t), busy) {
		t.Error("only taints and provider IDs matter")
	}
}
