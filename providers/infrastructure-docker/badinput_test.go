package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker/dockertest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// lab is a real API server, a real container runtime behind a proxy, and the manager with the permissions of a release.
type lab struct {
	t *testing.T
	ctrlclient.Client
	proxy     *dockertest.Proxy
	engine    *docker.Docker
	namespace string
	cluster   string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	proxy := dockertest.NewProxy(t)
	e := server.Start(t, "providers/core/config/crd/*.yaml", "providers/infrastructure-docker/config/crd/*.yaml")
	through, err := docker.New(docker.Options{Host: proxy.Host()})
	if err != nil {
		t.Fatal(err)
	}
	direct, err := docker.New(docker.Options{Host: dockertest.Host(t)})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{
		t: t, Client: e.NewClient(t, testenv.Scheme(t, dockerv1.AddToScheme)), proxy: proxy, engine: direct,
		namespace: e.Namespace(t), cluster: fmt.Sprintf("b-%d", time.Now().UnixNano()%1e9),
	}
	t.Cleanup(l.nothingLeft)
	grant(t, e, l.Client)
	run(t, e.Config, through)
	cluster := &clusterv1.Cluster{ObjectMeta: l.meta(l.cluster), Spec: clusterv1.ClusterSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: dockerv1.GroupVersion.Group, Kind: "DockerCluster", Name: l.cluster},
	}}
	create(t, l.Client, cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	if err := l.Client.Status().Update(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: l.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: l.cluster}}
}

// nothingLeft removes what is left of the cluster, which fails the test.
func (l *lab) nothingLeft() {
	ctx := context.WithoutCancel(l.t.Context())
	left, err := l.engine.List(ctx, map[string]string{identity.ClusterLabel: l.cluster})
	if err != nil {
		l.t.Error(err)
	}
	for _, c := range left {
		l.t.Errorf("container %s is left", c.Name)
		if err := l.engine.Remove(ctx, c.Name); err != nil {
			l.t.Error(err)
		}
	}
	machines := &dockerv1.DockerMachineList{}
	if err := l.Client.List(ctx, machines, ctrlclient.InNamespace(l.namespace)); err != nil {
		l.t.Error(err)
	}
	for i := range machines.Items { // Other tests share the API server.
		m := &machines.Items[i]
		m.Finalizers = nil
		if err := errors.Join(l.Client.Update(ctx, m), l.Client.Delete(ctx, m)); ctrlclient.IgnoreNotFound(err) != nil {
			l.t.Error(err)
		}
	}
}

// data is bootstrap data that runs commands, and then succeeds.
func data(commands ...string) string {
	out := "#cloud-config\nruncmd:\n"
	for _, c := range append(commands, "echo success > /run/cluster-api/bootstrap-success.complete") {
		out += fmt.Sprintf("- %q\n", c)
	}
	return out
}

// machine creates a worker with its Machine and bootstrap data.
func (l *lab) machine(name, bootstrap string, with func(*dockerv1.DockerMachineSpec)) *dockerv1.DockerMachine {
	l.t.Helper()
	secret := &corev1.Secret{ObjectMeta: l.meta(name), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte(bootstrap)}}
	owner := &clusterv1.Machine{ObjectMeta: l.meta(name), Spec: clusterv1.MachineSpec{
		ClusterName: l.cluster, Version: "v1.36.3", FailureDomain: "fd1", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To(name)},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: dockerv1.GroupVersion.Group, Kind: "DockerMachine", Name: name},
	}}
	create(l.t, l.Client, secret, owner)
	m := &dockerv1.DockerMachine{ObjectMeta: l.meta(name), Spec: dockerv1.DockerMachineSpec{
		DockerMachineBackendSpec: dockerv1.DockerMachineBackendSpec{CustomImage: dockertest.Busybox},
	}}
	m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, clusterv1.GroupVersion.WithKind("Machine"))}
	if with != nil {
		with(&m.Spec)
	}
	create(l.t, l.Client, m)
	return m
}

func (l *lab) container(name string) string { return identity.MachineContainer(l.cluster, name) }

// eventually waits until a machine satisfies a condition.
func (l *lab) eventually(name, what string, holds func(*dockerv1.DockerMachine) bool) *dockerv1.DockerMachine {
	l.t.Helper()
	var got *dockerv1.DockerMachine
	testenv.Eventually(l.t, what, func() error {
		var err error
		got, err = fetch(l.t.Context(), l.Client, ctrlclient.ObjectKey{Namespace: l.namespace, Name: name}, &dockerv1.DockerMachine{})
		if err == nil && !holds(got) {
			err = fmt.Errorf("spec %+v, status %+v", got.Spec, got.Status)
		}
		return err
	})
	return got
}

func (l *lab) bootstrapped(name string) {
	l.t.Helper()
	l.eventually(name, "the machine to be bootstrapped", func(m *dockerv1.DockerMachine) bool {
		return condition.IsTrue(m, dockerv1.BootstrapExecSucceededV1Beta1Condition) && condition.IsTrue(m, dockerv1.ContainerProvisionedV1Beta1Condition)
	})
}

// remove deletes a machine, and waits until it is gone.
func (l *lab) remove(m *dockerv1.DockerMachine) {
	l.t.Helper()
	if err := l.Client.Delete(l.t.Context(), m); err != nil {
		l.t.Fatal(err)
	}
	testenv.Eventually(l.t, "the machine to be gone", func() error {
		got, err := fetch(l.t.Context(), l.Client, ctrlclient.ObjectKeyFromObject(m), &dockerv1.DockerMachine{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("it exists, status %+v, error %w", got.Status, err)
		}
		return nil
	})
}

func (l *lab) exec(name string, args ...string) {
	l.t.Helper()
	if err := l.engine.Exec(l.t.Context(), l.container(name), engine.Command{Args: args}); err != nil {
		l.t.Fatal(err)
	}
}

// event reports whether there is an event of a machine that begins with text.
func (l *lab) event(name, text string) error {
	list := &corev1.EventList{}
	if err := l.Client.List(l.t.Context(), list, ctrlclient.InNamespace(l.namespace)); err != nil {
		return err
	}
	for _, e := range list.Items {
		if e.InvolvedObject.Name == name && strings.HasPrefix(e.Type+" "+e.Reason+" "+e.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("no event %q", text)
}

// summary returns a condition as text.
func summary(m *dockerv1.DockerMachine, t clusterv1.ConditionType) string {
	c := condition.Get(m, t)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s %s: %s", c.Status, c.Severity, c.Reason, c.Message)
}

// badInput is a machine that cannot be created because of something that a user can fix.
type badInput struct {
	reason string
	// spec and data describe the machine; data is "true" by default.
	spec func(l *lab, s *dockerv1.DockerMachineSpec)
	data []string
	// before is what is wrong.
	before func(l *lab, name string)
	// on is the condition that reports it, and want its begin and end. %s in it is the name of the container.
	on         clusterv1.ConditionType
	want, ends string
	// event is the begin of an event, if there is one.
	event string
	// fix is what the user does about it.
	fix func(l *lab, name string)
}

const (
	container = dockerv1.ContainerProvisionedV1Beta1Condition
	bootstrap = dockerv1.BootstrapExecSucceededV1Beta1Condition
	warning   = "False Warning ContainerProvisioningFailed: "
	failing   = "False Warning BootstrapFailed: "
)

func (b badInput) test(l *lab, name string) {
	t := l.t
	t.Helper()
	if b.before != nil {
		b.before(l, name)
	}
	var with func(*dockerv1.DockerMachineSpec)
	if b.spec != nil {
		with = func(s *dockerv1.DockerMachineSpec) { b.spec(l, s) }
	}
	m := l.machine(name, data(b.data...), with)
	of := func(text string) string { return strings.ReplaceAll(text, "%s", l.container(name)) }
	got := l.eventually(name, "the condition to report it", func(m *dockerv1.DockerMachine) bool {
		is := summary(m, b.on)
		return strings.HasPrefix(is, of(b.want)) && strings.HasSuffix(is, of(b.ends))
	})
	t.Logf("%s", summary(got, b.on))
	if b.event != "" {
		testenv.Eventually(t, "the event", func() error { return l.event(name, of(b.event)) })
	}
	if b.fix != nil {
		b.fix(l, name)
		fixed := time.Now()
		l.bootstrapped(name)
		t.Logf("recovered after %s", time.Since(fixed).Round(time.Millisecond))
	}
	l.remove(m)
}

const absent = "127.0.0.1:1/absent:v1"

func badInputs() []badInput {
	return []badInput{
		{
			reason: "no Docker", before: func(l *lab, _ string) { l.proxy.Cut() }, on: container,
			want: warning + `cannot inspect container "%s": cannot connect to the container runtime: no such file or directory: start the container runtime, or set DOCKER_HOST if it is not at unix:///`,
			fix:  func(l *lab, _ string) { l.proxy.Restore() },
		},
		{
			reason: "an image that does not exist", spec: func(_ *lab, s *dockerv1.DockerMachineSpec) { s.CustomImage = absent }, on: container,
			want: warning + `cannot pull image "` + absent + `": `, event: `Warning ContainerProvisioningFailed cannot pull image "` + absent + `"`,
			ends: "connection refused: check its name, give the container runtime access to the registry, or load the image into the container runtime",
			fix:  func(l *lab, _ string) { dockertest.Tag(l.t, absent) },
		},
		{
			reason: "a malformed image", spec: func(_ *lab, s *dockerv1.DockerMachineSpec) { s.CustomImage = "NOT AN IMAGE" }, on: container,
			want: warning + `cannot create container "%s": invalid reference format`, fix: useBusybox,
		},
		{
			reason: "a preKubeadmCommand that fails", data: []string{"test -e /fixed || { echo cannot find /fixed; exit 1; }"}, on: bootstrap,
			want:  failing + "Attempt 1 failed: command 1 of 2 in runcmd failed with exit code 1: cannot find /fixed",
			event: "Warning BootstrapFailed Attempt 1 failed: command 1 of 2 in runcmd failed with exit code 1. See \"docker exec %s cat /var/log/cluster-api-bootstrap.log\"",
			fix:   func(l *lab, name string) { l.exec(name, "touch", "/fixed") },
		},
		{
			reason: "the disk of the container is full", spec: fullDisk, on: bootstrap,
			want: failing + "running the bootstrap data: cannot ", ends: "No space left on device",
			event: "Warning BootstrapFailed running the bootstrap data: cannot ",
			fix:   func(l *lab, name string) { l.exec(name, "rm", "/var/lib/cluster-api/filler") },
		},
		{
			reason: "the name of a container of another program", on: container,
			before: func(l *lab, name string) {
				c := engine.Container{Name: l.container(name), Image: dockertest.Busybox, Args: []string{"sleep", "1000"}}
				if err := l.engine.Create(l.t.Context(), c); err != nil {
					l.t.Fatal(err)
				}
			},
			want: warning + `container "%s" belongs to something other than this provider: remove it, or use another name for this object`,
			fix: func(l *lab, name string) {
				if err := l.engine.Remove(l.t.Context(), l.container(name)); err != nil {
					l.t.Fatal(err)
				}
			},
		},
		{
			reason: "a path of the host that is not absolute", on: container, want: warning + `spec.extraMounts[0].hostPath is "x": it must be an absolute path`,
			spec: func(_ *lab, s *dockerv1.DockerMachineSpec) {
				s.ExtraMounts = []dockerv1.Mount{{HostPath: "x", ContainerPath: "/x"}}
			},
			fix: useBusybox,
		},
		{
			reason: "a mount that Docker refuses", on: container, want: warning + `cannot create container "%s": invalid volume specification: '/tmp:/'`,
			spec: func(_ *lab, s *dockerv1.DockerMachineSpec) {
				s.ExtraMounts = []dockerv1.Mount{{HostPath: "/tmp", ContainerPath: "/"}}
			},
			fix: useBusybox,
		},
		{
			reason: "an image whose program does not exist", on: container, want: warning + `cannot start container "%s": `, ends: "executable file not found in $PATH: unknown",
			spec: func(l *lab, s *dockerv1.DockerMachineSpec) {
				s.ExtraMounts = []dockerv1.Mount{{HostPath: l.t.TempDir(), ContainerPath: "/bin"}}
			},
			fix: useBusybox,
		},
		{
			reason: "a provider ID that is not the name of a container", on: container, want: warning + `cannot inspect container "../images/x": it is not a valid name`,
			spec: func(_ *lab, s *dockerv1.DockerMachineSpec) { s.ProviderID = "docker:////../images/x" },
		},
	}
}

// useBusybox is the fix of a wrong specification.
func useBusybox(l *lab, name string) {
	l.t.Helper()
	m, err := fetch(l.t.Context(), l.Client, ctrlclient.ObjectKey{Namespace: l.namespace, Name: name}, &dockerv1.DockerMachine{})
	if err != nil {
		l.t.Fatal(err)
	}
	before := m.DeepCopy()
	m.Spec.CustomImage, m.Spec.ExtraMounts = dockertest.Busybox, nil
	if err := l.Client.Patch(l.t.Context(), m, ctrlclient.MergeFrom(before)); err != nil {
		l.t.Fatal(err)
	}
}

// fullDisk mounts a file system without free space where the machine keeps the state of its bootstrap.
func fullDisk(l *lab, s *dockerv1.DockerMachineSpec) {
	l.t.Helper()
	dir := l.t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		l.t.Skipf("only root can mount file systems: %v", err)
	}
	l.t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			l.t.Error(err)
		}
	})
	err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600)
	if !errors.Is(err, syscall.ENOSPC) {
		l.t.Fatalf("the file system is not full: %v", err)
	}
	s.ExtraMounts = append(s.ExtraMounts, dockerv1.Mount{HostPath: dir, ContainerPath: "/var/lib/cluster-api"})
}

// TestBadInput creates machines that cannot work, over a real container runtime: one clear message, recovery once the cause is gone,
// and nothing left behind.
func TestBadInput(t *testing.T) {
	l := newLab(t)
	for i, b := range badInputs() {
		t.Run(b.reason, func(t *testing.T) {
			one := *l
			one.t = t
			b.test(&one, fmt.Sprintf("m%d", i))
		})
	}
}

// TestContainersChangedByHand removes, stops, starts, pauses and resumes the container of a machine: its condition follows.
func TestContainersChangedByHand(t *testing.T) {
	l := newLab(t)
	m := l.machine("m", data("true"), nil)
	l.bootstrapped("m")
	api, name := dockertest.Client(t), l.container("m")
	follows := func(what, want string) {
		t.Helper()
		began := time.Now()
		l.eventually("m", what, func(m *dockerv1.DockerMachine) bool { return summary(m, container) == want })
		t.Logf("%s: after %s", what, time.Since(began).Round(time.Millisecond))
	}
	const ready = "True  : "
	for _, change := range []struct {
		what string
		do   func() error
		want string
	}{
		{"paused", func() error {
			_, err := api.ContainerPause(t.Context(), name, client.ContainerPauseOptions{})
			return err
		}, warning + "Container " + name + ` is paused: resume it with "docker unpause ` + name + `"`},
		{"resumed", func() error {
			_, err := api.ContainerUnpause(t.Context(), name, client.ContainerUnpauseOptions{})
			return err
		}, ready},
		{"killed", func() error { return l.engine.Signal(t.Context(), name, "SIGKILL") },
			warning + "Container " + name + ` does not run, exit code 137: start it with "docker start ` + name + `", or delete the Machine to replace it`},
		{"started", func() error { return l.engine.Start(t.Context(), name) }, ready},
		{"killed and started while the manager cannot reach the runtime", func() error {
			l.proxy.Cut()
			defer l.proxy.Restore()
			return errors.Join(l.engine.Signal(t.Context(), name, "SIGKILL"), l.engine.Start(t.Context(), name))
		}, ready},
		{"removed while the manager cannot reach the runtime", func() error {
			l.proxy.Cut()
			defer l.proxy.Restore()
			return l.engine.Remove(t.Context(), name)
		}, "False Error ContainerDeleted: Container " + name + " was removed: delete the Machine to replace it"},
	} {
		if err := change.do(); err != nil {
			t.Fatalf("%s: %v", change.what, err)
		}
		follows(change.what, change.want)
	}
	if err := l.event("m", "Warning ContainerDeleted Container "+name+" was removed"); err != nil {
		testenv.Eventually(t, "the event", func() error { return l.event("m", "Warning ContainerDeleted") })
	}
	l.remove(m)
}

// TestOneContainerForTwoMachines: the second machine names the container of the first. It neither uses nor removes it.
func TestOneContainerForTwoMachines(t *testing.T) {
	l := newLab(t)
	first := l.machine("first", data("true"), nil)
	l.bootstrapped("first")
	name := l.container("first")
	second := l.machine("second", data("true"), func(s *dockerv1.DockerMachineSpec) { s.ProviderID = "docker:////" + name })
	l.eventually("second", "the conflict to be reported", func(m *dockerv1.DockerMachine) bool {
		return summary(m, container) == fmt.Sprintf("%scontainer %q belongs to DockerMachine %s/first: remove it, or use another name for this object", warning, name, l.namespace)
	})
	l.remove(second)
	if state, err := l.engine.Inspect(t.Context(), name); err != nil || !state.Running {
		t.Errorf("the container of the first machine: %+v, error %v", state, err)
	}
	l.remove(first)
}

// TestRuntimeStopsMeanwhile creates machines while the connection to the container runtime is cut again and again: each has one
// container in the end, and was bootstrapped once.
func TestRuntimeStopsMeanwhile(t *testing.T) {
	l := newLab(t)
	var all []*dockerv1.DockerMachine
	for i := range 6 {
		all = append(all, l.machine(fmt.Sprintf("m%d", i), data("echo x >> /count", "sleep 1"), nil))
		l.proxy.Cut()
		l.proxy.Restore()
		testenv.Eventually(t, "a container to be created", func() error {
			found, err := l.engine.List(t.Context(), map[string]string{identity.ClusterLabel: l.cluster})
			if err == nil && len(found) < i {
				err = fmt.Errorf("%d containers", len(found))
			}
			return err
		})
		l.proxy.Cut()
		l.proxy.Restore()
	}
	var want, got []string
	for _, m := range all {
		l.bootstrapped(m.Name)
		l.exec(m.Name, "sh", "-c", `test "$(cat /count)" = x`)
		want = append(want, l.container(m.Name))
	}
	found, err := l.engine.List(t.Context(), map[string]string{identity.ClusterLabel: l.cluster})
	for _, c := range found {
		got = append(got, c.Name)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("containers %v, want %v, error %v", got, want, err)
	}
	for _, m := range all {
		l.remove(m)
	}
}

// TestNodeImage runs machines of the real node image with every option, and with a configuration that kubeadm refuses. There is no
// cluster to join.
func TestNodeImage(t *testing.T) {
	l := newLab(t)
	if _, err := dockertest.Client(t).ImageInspect(t.Context(), "kindest/node:v1.36.3"); err != nil {
		t.Skipf("run make node-image VERSION=v1.36.3: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the host"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := l.machine("options", data(
		"ctr --namespace k8s.io images list -q | grep -F "+dockertest.Busybox, "grep host /mnt/extra/file", "! touch /mnt/extra/new", "grep / /mnt/missing/x || touch /mnt/missing/x",
	), func(s *dockerv1.DockerMachineSpec) {
		s.CustomImage, s.PreLoadImages = "", []string{dockertest.Busybox}
		s.ExtraMounts = []dockerv1.Mount{
			{HostPath: dir, ContainerPath: "/mnt/extra", Readonly: ptr.To(true)}, {HostPath: filepath.Join(dir, "missing"), ContainerPath: "/mnt/missing"},
		}
	})
	l.bootstrapped("options")
	if state, err := l.engine.Inspect(t.Context(), l.container("options")); err != nil || state.Labels[identity.FailureDomainLabel] != "fd1" {
		t.Errorf("%+v, error %v", state, err)
	}
	l.remove(m)
	const refused = `#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta4
    kind: JoinConfiguration
    discovery: {}
runcmd: ["kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml"]
`
	m = l.machine("refused", refused, func(s *dockerv1.DockerMachineSpec) { s.CustomImage = "" })
	got := l.eventually("refused", "kubeadm to refuse its configuration", func(m *dockerv1.DockerMachine) bool {
		return strings.HasPrefix(summary(m, bootstrap), failing+"Attempt 1 failed: command 1 of 1 in runcmd failed with exit code ")
	})
	t.Log(summary(got, bootstrap))
	l.remove(m)
	// The timeout command of the node image ends everything that hangs; that of busybox does not.
	hangs := badInput{
		data: []string{"test -e /fixed || sleep 1000"}, on: bootstrap,
		spec: func(_ *lab, s *dockerv1.DockerMachineSpec) {
			s.CustomImage, s.BootstrapTimeout = "", &metav1.Duration{Duration: 20 * time.Second}
		},
		want:  failing + "Attempt 1 failed: command 1 of 2 in runcmd did not end within 20s",
		event: "Warning BootstrapFailed Attempt 1 failed: command 1 of 2 in runcmd did not end within 20s",
		fix: func(l *lab, name string) {
			l.exec(name, "sh", "-c", "! pgrep -x sleep") // Nothing of the attempt continues.
			l.exec(name, "touch", "/fixed")
		},
	}
	hangs.test(l, "hangs")
}
