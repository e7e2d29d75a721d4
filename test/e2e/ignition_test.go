package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// TestIgnition boots a control plane machine and a worker from Ignition documents, with everything that a KubeadmConfigSpec can
// express and that a container can have, and with CAs of the user whose keys are ECDSA P-384.
func TestIgnition(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	for _, purpose := range []pki.Purpose{pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount} {
		w.Applied(provided(t, w, "ignition", purpose, pki.ECDSAP384))
	}
	w.Applied(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "ignition-files"}, StringData: map[string]string{"token": "a secret"}})
	c := subject(t, w, withoutClass("ignition"))
	applyFile(t, w, "ignition.yaml")
	stage(t, "1 control plane machine and 1 worker, from Ignition documents", func() {
		network(t, c)
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), journey.Workers(1), journey.Version(newer), c.WorkloadMatches)
	})
	controlPlane, worker := containerOf(c.Snapshot().ControlPlane()[0]), containerOf(c.Snapshot().Workers()[0])
	for _, tt := range []struct{ reason, script, want string }{
		{"a file with owner and mode", `stat -c '%U:%G %a' /etc/example/plain; cat /etc/example/plain`, "tester:operators 640\nit's \"plain\" & 100% text"},
		{"base64 is decoded", `cat /etc/example/encoded`, "bytes"},
		{"a file from a Secret", `stat -c '%U %a' /etc/example/secret; cat /etc/example/secret`, "root 600\na secret"},
		{"an appended file", `grep -c localhost /etc/hosts | sed 's/[1-9].*/some/'; tail -n 1 /etc/hosts`, "some\n192.0.2.7 added.example.com"},
		{"a user with groups", `id -nG tester | tr ' ' '\n' | sort; getent passwd tester | cut -d: -f5-7`, "adm\noperators\ntester\nA tester:/home/tester:/bin/bash"},
		{"a user with sudo", `stat -c %a /etc/sudoers.d/tester; cat /etc/sudoers.d/tester`, "600\ntester ALL=(ALL) NOPASSWD:ALL"},
		{"a file, a link and a group of additionalConfig", `cat /etc/example/link; echo; getent group more`, "additional\nmore:x:4321:"},
		{"a unit of additionalConfig runs, and does after a restart", `systemctl is-active marker; systemctl is-enabled marker; cat /run/example/marker`, "active\nenabled\ndone"},
		{"a drop-in of a unit that the image has", `tr '\0' '\n' < /proc/$(systemctl show containerd -p MainPID --value)/environ | grep EXAMPLE`, "EXAMPLE=1"},
		{"a mount, before etcd wrote to it", `findmnt -n -o FSROOT /var/lib/etcd | sed 's/.*\(.srv.etcd\)$/\1/'; ls /srv/etcd`, "/srv/etcd\nmember"},
		{"NTP servers", `grep ^server /etc/ntp.conf`, "server ntp.example.com"},
		{"commands before and after kubeadm", `cat /run/example/order`, "before kubeadm\nit's shared\nnode/" + controlPlane},
		{"arguments of components", `grep -o -- --node-cidr-mask-size=.* /etc/kubernetes/manifests/kube-controller-manager.yaml`, "--node-cidr-mask-size=25"},
		{"kubeadm's configuration does not stay", `test -e /etc/kubeadm.yml && echo left; cat /run/cluster-api/bootstrap-success.complete`, "success"},
		{"keys that kubeadm generates are like those of the CA", `openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -text | grep -o 'NIST CURVE.*'`, "NIST CURVE: P-384"},
	} {
		if got := inContainer(t, controlPlane, tt.script); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.reason, got, tt.want)
		}
	}
	if got := inContainer(t, worker, `cat /etc/motd; test -e /etc/kubernetes/pki/ca.key && echo 'a CA key'`); got != "a worker" {
		t.Errorf("the file of a worker: %q", got)
	}
	if labels := kubectl(t, c, "get", "nodes", "--selector", "example.com/from=ignition", "--output", "name"); strings.Count(labels, "node/") != 2 {
		t.Errorf("Nodes with the label of their kubelet's arguments: %q, want both", labels)
	}
	verifiedKubeconfig(t, c, pki.ECDSAP384)
	gone(t, c)
}

// applyFile applies objects in testdata.
func applyFile(t *testing.T, w *journey.World, name string) {
	t.Helper()
	r := w.Tools.Kubectl(t.Context(), "", "--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace, "apply", "--filename", filepath.Join("testdata", name))
	if r.Failed {
		t.Fatal(r)
	}
}

// inContainer runs a script in a machine, and returns what it prints, without the last newline. Its exit code does not matter.
func inContainer(t *testing.T, container, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "exec", container, "bash", "-c", script+"; true").CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}
