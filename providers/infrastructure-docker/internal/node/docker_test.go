package node_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/node"
)

// version is the version of Kubernetes of the node image.
const version = "v1.36.3"

// runtime connects to the container runtime, and checks that it has the node image.
func runtime(t *testing.T) engine.Engine {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("CAPI_REQUIRE_DOCKER") != "" {
		absent = t.Fatalf
	}
	d, err := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST"), CertPath: os.Getenv("DOCKER_CERT_PATH")})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.EnsureImage(t.Context(), "kindest/node:"+version); err != nil {
		absent("no container runtime with the node image; see hack/docker.sh and make node-image: %v", err)
	}
	return d
}

// create creates the container of a machine, which is removed after the test, and returns its address.
func create(t *testing.T, e engine.Engine, m node.Machine) string {
	t.Helper()
	described, err := m.Describe()
	if err != nil {
		t.Fatal(err)
	}
	// A network of its own: other tests remove the network of clusters with the last of them.
	described.Network = fmt.Sprintf("capd-test-node-%d", os.Getpid())
	if err := e.EnsureNetwork(t.Context(), described.Network); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.RemoveNetwork(context.WithoutCancel(t.Context()), described.Network); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := e.Remove(context.WithoutCancel(t.Context()), m.Container()); err != nil {
			t.Error(err)
		}
	})
	if err := e.Create(t.Context(), described); err != nil {
		t.Fatal(err)
	}
	state, err := e.Inspect(t.Context(), m.Container())
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Claim().Check(m.Container(), state.Labels); err != nil {
		t.Error(err)
	}
	return state.IPv4
}

func newMachine(cluster, name string, labels map[string]string) node.Machine {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-1", Labels: labels}
	return node.Machine{
		Object:  kinds.OfDockerMachine(&dockerv1.DockerMachine{ObjectMeta: meta}),
		Owner:   &clusterv1.Machine{ObjectMeta: meta, Spec: clusterv1.MachineSpec{Version: version}},
		Cluster: cluster,
	}
}

func run(t *testing.T, e engine.Engine, m node.Machine, format, data string, number int) bootstrap.Result {
	t.Helper()
	plan, err := bootstrap.Read([]byte(data), format)
	if err != nil {
		t.Fatal(err)
	}
	r, err := bootstrap.Run(t.Context(), e, m.Container(), plan, number, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// output returns the output of a command in a container.
func output(t *testing.T, e engine.Engine, m node.Machine, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := e.Exec(t.Context(), m.Container(), engine.Command{Args: args, Stdout: &out, Stderr: &out}); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// cloudConfig is a format.
const cloudConfig = "cloud-config"

const initialize = `## template: jinja
#cloud-config
write_files:
- path: /run/kubeadm/kubeadm.yaml
  owner: root:root
  permissions: "0640"
  content: |
    apiVersion: kubeadm.k8s.io/v1beta3
    kind: ClusterConfiguration
    kubernetesVersion: %[1]s
    controlPlaneEndpoint: %[2]s:6443
    networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}
    ---
    apiVersion: kubeadm.k8s.io/v1beta3
    kind: InitConfiguration
    bootstrapTokens: [{token: abcdef.0123456789abcdef}]
    nodeRegistration: {}
runcmd:
- "kubeadm init --config /run/kubeadm/kubeadm.yaml && echo success > /run/cluster-api/bootstrap-success.complete"
`

const join = `#cloud-config
write_files:
- path: /run/kubeadm/kubeadm-join-config.yaml
  content: |
    apiVersion: kubeadm.k8s.io/v1beta3
    kind: JoinConfiguration
    discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: "%[1]s:6443", unsafeSkipCAVerification: true}}
runcmd:
- "%[2]s"
- "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml && echo success > /run/cluster-api/bootstrap-success.complete"
`

// joinIgnition returns an Ignition document as the kubeadm bootstrap provider writes it, with a user who owns a file.
func joinIgnition(t *testing.T, address string) string {
	t.Helper()
	source := func(text string) map[string]any {
		return map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString([]byte(text))}
	}
	configuration := fmt.Sprintf("apiVersion: kubeadm.k8s.io/v1beta3\nkind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: %q, unsafeSkipCAVerification: true}}\n", address+":6443")
	const script = "#!/bin/bash\nset -e\nkubeadm join --config /etc/kubeadm.yml\nmkdir -p /run/cluster-api && echo success > /run/cluster-api/bootstrap-success.complete\nmv /etc/kubeadm.yml /tmp/\n"
	document, err := json.Marshal(map[string]any{
		"ignition": map[string]any{"version": "2.3.0"},
		"passwd":   map[string]any{"users": []any{map[string]any{"name": "capi", "groups": []string{"users", "admin"}}}},
		"storage": map[string]any{"files": []any{
			map[string]any{"filesystem": "root", "path": "/etc/kubeadm.sh", "mode": 0o700, "contents": source(script)},
			map[string]any{"filesystem": "root", "path": "/etc/kubeadm.yml", "mode": 0o600, "contents": source(configuration)},
			map[string]any{"filesystem": "root", "path": "/opt/owned", "mode": 0o640, "user": map[string]any{"name": "capi"}, "group": map[string]any{"name": "admin"}, "contents": source("x")},
		}},
		"systemd": map[string]any{"units": []any{
			map[string]any{"name": "absent.mount", "enabled": true, "contents": "[Mount]\nWhat=/dev/absent\nWhere=/absent\n[Install]\nWantedBy=multi-user.target\n"},
			map[string]any{"name": "kubeadm.service", "enabled": true, "contents": "[Service]\nType=oneshot\nExecStart=/etc/kubeadm.sh\n"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(document)
}

// TestKubeadm creates a cluster of three containers with a real kubeadm: two from cloud-configs, of which one fails half-way at first,
// and one from an Ignition document.
func TestKubeadm(t *testing.T) {
	e := runtime(t)
	cluster := fmt.Sprintf("capd-test-%d", os.Getpid())
	first := newMachine(cluster, "cp", map[string]string{clusterv1.MachineControlPlaneLabel: ""})
	address := create(t, e, first)
	began := time.Now()
	data := fmt.Sprintf(initialize, version, address)
	r := run(t, e, first, cloudConfig, data, 1)
	if !r.Bootstrapped || r.Code != 0 || r.Number != 1 {
		t.Fatalf("%s: %s", r.Why(), r.Log)
	}
	t.Logf("kubeadm init took %s", time.Since(began))
	// kubeadm join returns when the kubelet has its certificate, which may be before it creates its Node.
	joined := func(m node.Machine) {
		t.Helper()
		output(t, e, first, "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf",
			"wait", "--for=create", "--timeout=60s", "node/"+m.Hostname())
	}
	joined(first)

	worker := newMachine(cluster, "w", nil)
	create(t, e, worker)
	// What the failed attempt leaves behind would make kubeadm fail without a reset.
	broken := fmt.Sprintf(join, address, "mkdir -p /etc/kubernetes/manifests && touch /etc/kubernetes/kubelet.conf && false")
	if r := run(t, e, worker, cloudConfig, broken, 1); r.Bootstrapped || r.Why() != "command 1 of 2 in runcmd failed with exit code 1" {
		t.Errorf("%s: %s", r.Why(), r.Log)
	}
	if r := run(t, e, worker, cloudConfig, fmt.Sprintf(join, address, "true"), 2); !r.Bootstrapped || r.Code != 0 || r.Number != 2 {
		t.Fatalf("%s: %s", r.Why(), r.Log)
	}
	joined(worker)

	ignited := newMachine(cluster, "i", nil)
	create(t, e, ignited)
	if r := run(t, e, ignited, "ignition", joinIgnition(t, address), 1); !r.Bootstrapped || r.Code != 0 {
		t.Fatalf("%s: %s", r.Why(), r.Log)
	}
	joined(ignited)
	if got := output(t, e, ignited, "stat", "-c", "%U:%G %a", "/opt/owned"); got != "capi:admin 640" {
		t.Errorf("file of a user: %s", got)
	}

	// A restart empties /run, with the sentinel file.
	if err := e.Signal(t.Context(), worker.Container(), "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	for state := (&engine.State{Running: true}); state.Running; {
		var err error
		if state, err = e.Inspect(t.Context(), worker.Container()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Start(t.Context(), worker.Container()); err != nil {
		t.Fatal(err)
	}
	if r := run(t, e, worker, cloudConfig, broken, 1); !r.Bootstrapped || r.Number != 2 {
		t.Errorf("after a restart: %+v", r)
	}
}
