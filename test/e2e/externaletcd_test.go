package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/journey"
)

// singleMachine has the objects of a Cluster with 1 control plane machine and no workers. Its arguments are the name, and
// kubeadm's ClusterConfiguration in flow style.
const singleMachine = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerCluster
metadata: {name: %[1]s}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerMachineTemplate
metadata: {name: %[1]s}
spec: {template: {spec: {}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlane
metadata: {name: %[1]s}
spec:
  replicas: 1
  version: v1.36.3
  machineTemplate: {infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: DockerMachineTemplate, name: %[1]s}}
  kubeadmConfigSpec: {clusterConfiguration: %[2]s}
`

// single creates a Cluster of singleMachine.
func single(t *testing.T, w *journey.World, name, clusterConfiguration string) *journey.Subject {
	t.Helper()
	c := subject(t, w, withoutClass(name))
	r := w.Tools.Kubectl(t.Context(), fmt.Sprintf(singleMachine, name, clusterConfiguration),
		"--kubeconfig", w.Kubeconfig, "--namespace", w.Namespace, "apply", "--filename", "-")
	if r.Failed {
		t.Fatal(r)
	}
	network(t, c)
	return c
}

// TestExternalEtcd creates a cluster whose etcd is not on its machines: it is that of another cluster, with another prefix of keys. The
// control plane is scaled up and down.
func TestExternalEtcd(t *testing.T) {
	testenv.Soak(t)
	t.Parallel()
	w := shared.World(t)
	w.Patient()
	var host, c *journey.Subject
	stage(t, "1 control plane machine with etcd", func() {
		host = single(t, w, "etcd-host", "{}")
		host.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), host.WorkloadMatches)
	})
	secrets := providesEtcd(t, w, host, "etcd-guest")
	stage(t, "1 control plane machine with external etcd", func() {
		c = single(t, w, "etcd-guest", fmt.Sprintf(`{apiServer: {extraArgs: {etcd-prefix: /guest}}, etcd: {external: {endpoints: ["https://%s"],
      caFile: /etc/kubernetes/pki/etcd/ca.crt, certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt, keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key}}}`,
			etcdOf(t, host)))
		c.Eventually("the Cluster becomes ready", journey.Ready, journey.ControlPlanes(1), c.NodesMatch)
	})
	for _, replicas := range []int{3, 1} {
		stage(t, fmt.Sprintf("scaled to %d control plane machines", replicas), func() {
			k := &controlplanev1.KubeadmControlPlane{}
			if err := w.Client.Get(t.Context(), c.Key(), k); err != nil {
				t.Fatal(err)
			}
			before := k.DeepCopy()
			k.Spec.Replicas = ptr.To(int32(replicas))
			if err := w.Client.Patch(t.Context(), k, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
			c.Eventually("the control plane is scaled", journey.Ready, journey.ControlPlanes(replicas), c.NodesMatch)
		})
	}
	if pods := kubectl(t, c, "get", "pods", "--namespace", "kube-system", "--selector", "component=etcd", "--output", "name"); strings.TrimSpace(pods) != "" {
		t.Errorf("the machines run etcd: %s", pods)
	}
	if members, err := host.Workload().Members(t.Context(), host.Snapshot().ControlPlane()[0].Status.NodeRef.Name); err != nil || len(members) != 1 {
		t.Errorf("etcd has members %q, %v: the control plane must not change them", members, err)
	}
	gone(t, c)
	for _, secret := range secrets { // they belong to the user
		if err := w.Client.Delete(t.Context(), secret); err != nil {
			t.Error(err)
		}
	}
	gone(t, host)
}

// etcdOf returns host and port of the etcd of a Cluster with one control plane machine.
func etcdOf(t *testing.T, c *journey.Subject) string {
	t.Helper()
	nodes, err := c.Workload().Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range nodes[0].Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return net.JoinHostPort(a.Address, "2379")
		}
	}
	t.Fatalf("Node %s has no internal address", nodes[0].Name)
	return ""
}

// providesEtcd creates the Secrets of external etcd for a Cluster: the CA of the other one's etcd without key, and a client
// certificate. It returns them.
func providesEtcd(t *testing.T, w *journey.World, host *journey.Subject, name string) []client.Object {
	t.Helper()
	secret := &corev1.Secret{}
	if err := w.Client.Get(t.Context(), pki.SecretKey(host.Key(), pki.EtcdCA), secret); err != nil {
		t.Fatal(err)
	}
	ca, err := pki.CAFrom(secret)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ca.Issue(pki.Request{CommonName: "guest", Organizations: []string{"system:masters"}, Validity: 24 * time.Hour}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: w.Namespace, Name: name}
	secrets := []client.Object{
		pki.NewSecret(key, pki.EtcdCA, map[string][]byte{pki.CertificateKey: secret.Data[pki.CertificateKey]}, nil),
		pki.NewSecret(key, pki.APIServerEtcdClient, certificate.Data(), nil),
	}
	w.Applied(secrets...)
	return secrets
}
