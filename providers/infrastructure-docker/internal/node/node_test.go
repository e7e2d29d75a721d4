package node

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
)

func machine(with ...func(*Machine)) Machine {
	m := Machine{
		Object:  kinds.OfDockerMachine(&dockerv1.DockerMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "infra", UID: "uid"}}),
		Owner:   &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}, Spec: clusterv1.MachineSpec{Version: "v1.36.3"}},
		Cluster: "c",
	}
	for _, f := range with {
		f(&m)
	}
	return m
}

func TestDescribe(t *testing.T) {
	labels := map[string]string{
		"io.x-k8s.kind.cluster": "c", "io.x-k8s.kind.role": "worker", "docker.cluster.x-k8s.io/kind": "DockerMachine",
		"docker.cluster.x-k8s.io/namespace": "default", "docker.cluster.x-k8s.io/name": "infra", "docker.cluster.x-k8s.io/identity": "uid",
	}
	want := func(with ...func(*engine.Container)) engine.Container {
		c := engine.Container{
			Name: "c-m", Hostname: "c-m", Image: "kindest/node:v1.36.3", Network: "kind", TTY: true, Privileged: true, PrivateCgroups: true, Restart: engine.Once,
			SecurityOptions: []string{"seccomp=unconfined", "apparmor=unconfined"}, Tmpfs: map[string]string{"/tmp": "", "/run": ""}, Volumes: []string{"/var"},
			Mounts: []engine.Mount{{HostPath: "/lib/modules", ContainerPath: "/lib/modules", ReadOnly: true}}, Labels: map[string]string{},
		}
		maps.Copy(c.Labels, labels)
		for _, f := range with {
			f(&c)
		}
		return c
	}
	for _, tt := range []struct {
		reason string
		m      Machine
		want   engine.Container
		fails  string
	}{
		{reason: "a worker", m: machine(), want: want()},
		{reason: "a control plane machine publishes its API server on this host only", m: machine(func(m *Machine) {
			m.Owner.Labels = map[string]string{clusterv1.MachineControlPlaneLabel: ""}
			m.Owner.Spec.FailureDomain = "fd1"
		}), want: want(func(c *engine.Container) {
			c.Ports = []engine.Port{{HostIP: "127.0.0.1", ContainerPort: 6443}}
			c.Labels["io.x-k8s.kind.role"], c.Labels["io.x-k8s.cluster.failureDomain"] = "control-plane", "fd1"
		})},
		{reason: "a custom image, mounts, and the label of a pool", m: machine(func(m *Machine) {
			m.Owner.Spec.Version = ""
			m.Object.Labels = map[string]string{"docker.cluster.x-k8s.io/machine-pool": "p"}
			m.Object.Spec.CustomImage = "registry/node:x"
			m.Object.Spec.ExtraMounts = []dockerv1.Mount{{HostPath: "/var/run/docker.sock", ContainerPath: "/var/run/docker.sock"}, {HostPath: "/h", ContainerPath: "/c", Readonly: ptr.To(true)}}
		}), want: want(func(c *engine.Container) {
			c.Image, c.Labels["docker.cluster.x-k8s.io/machine-pool"] = "registry/node:x", "p"
			c.Mounts = append(c.Mounts, engine.Mount{HostPath: "/var/run/docker.sock", ContainerPath: "/var/run/docker.sock"}, engine.Mount{HostPath: "/h", ContainerPath: "/c", ReadOnly: true})
		})},
		{reason: "a version with build metadata", m: machine(func(m *Machine) { m.Owner.Spec.Version = "1.36.3+rke2" }), want: want(func(c *engine.Container) { c.Image = "kindest/node:v1.36.3_rke2" })},
		{reason: "no version and no image", m: machine(func(m *Machine) { m.Owner.Spec.Version = "" }), fails: "set spec.version"},
		{reason: "a relative mount", m: machine(func(m *Machine) { m.Object.Spec.ExtraMounts = []dockerv1.Mount{{HostPath: "a", ContainerPath: "/b"}} }), fails: `spec.extraMounts[0].hostPath is "a"`},
		{reason: "a mount without a path", m: machine(func(m *Machine) { m.Object.Spec.ExtraMounts = []dockerv1.Mount{{HostPath: "/a"}} }), fails: `spec.extraMounts[0].containerPath is ""`},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := tt.m.Describe()
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v, want %q", err, tt.fails)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := "c-" + strings.Repeat("x", 70)
	for _, tt := range []struct {
		reason              string
		m                   Machine
		container, hostname string
	}{
		{"cluster and Machine", machine(), "c-m", "c-m"},
		{"the name of the cluster is not repeated", machine(func(m *Machine) { m.Owner.Name = "c-m" }), "c-m", "c-m"},
		{"the provider ID decides, also for machines of earlier versions", machine(func(m *Machine) { *m.Object.ProviderID = "docker:////old" }), "old", "old"},
		{"an empty provider ID does not", machine(func(m *Machine) { *m.Object.ProviderID = "docker:////" }), "c-m", "c-m"},
		{"without a Machine", machine(func(m *Machine) { m.Owner = nil }), "c-infra", "c-infra"},
		{"Linux limits hostnames", machine(func(m *Machine) { m.Owner.Name = long }), long, "c-" + strings.Repeat("x", 56) + "sv5x4"},
	} {
		if got := tt.m.Container(); got != tt.container {
			t.Errorf("%s: container %q", tt.reason, got)
		}
		if got := tt.m.Hostname(); got != tt.hostname || len(got) > 63 {
			t.Errorf("%s: hostname %q", tt.reason, got)
		}
		if got := tt.m.ProviderID(); got != "docker:////"+tt.container {
			t.Errorf("%s: provider ID %q", tt.reason, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	want := []clusterv1.MachineAddress{{Type: "Hostname", Address: "c-m"}, {Type: "InternalIP", Address: "1.2.3.4"}, {Type: "InternalIP", Address: "fd00::1"}, {Type: "ExternalIP", Address: "1.2.3.4"}, {Type: "ExternalIP", Address: "fd00::1"}}
	if diff := cmp.Diff(want, machine().Addresses(&engine.State{IPv4: "1.2.3.4", IPv6: "fd00::1"})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(want[:1], machine().Addresses(&engine.State{})); diff != "" {
		t.Errorf("without a network, -want +got:\n%s", diff)
	}
}
