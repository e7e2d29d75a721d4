package journey

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// externalEtcd is a ClusterConfiguration with external etcd.
const externalEtcd = `etcd: {external: {endpoints: ["https://etcd.example.com:2379"], caFile: /etc/kubernetes/pki/etcd/ca.crt,
    certFile: /etc/kubernetes/pki/apiserver-etcd-client.crt, keyFile: /etc/kubernetes/pki/apiserver-etcd-client.key}}`

// etcdSecrets creates the Secrets of external etcd: its CA without key, and a client certificate.
func (w *World) etcdSecrets(cluster string) {
	w.t.Helper()
	key := types.NamespacedName{Namespace: w.Namespace, Name: cluster}
	ca, err := pki.NewCA(pki.ECDSA, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	pair, err := ca.PEM()
	if err != nil {
		w.t.Fatal(err)
	}
	certificate, err := ca.Issue(pki.Request{CommonName: "apiserver", Validity: time.Hour}, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.Applied(
		pki.NewSecret(key, pki.EtcdCA, map[string][]byte{pki.CertificateKey: pair.Certificate}, nil),
		pki.NewSecret(key, pki.APIServerEtcdClient, certificate.Data(), nil),
	)
}

// plane reads, changes and updates the KubeadmControlPlane c.
func (c *Subject) plane(change func(*controlplanev1.KubeadmControlPlane)) {
	c.t.Helper()
	k := &controlplanev1.KubeadmControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "c"}}
	c.update(k, func() { change(k) })
}

// withoutEtcd is true when etcd is healthy by definition, and neither Machines nor Nodes have any.
func (c *Subject) withoutEtcd(p *Snapshot) error {
	if !ConditionIsTrue(&p.ControlPlanes.Items[0], controlplanev1.EtcdClusterHealthyCondition) {
		return fmt.Errorf("EtcdClusterHealthy of a control plane with external etcd is not True")
	}
	for _, m := range p.ControlPlane() {
		for _, t := range []clusterv1.ConditionType{controlplanev1.MachineEtcdPodHealthyCondition, controlplanev1.MachineEtcdMemberHealthyCondition} {
			if HasCondition(&m, t) {
				return fmt.Errorf("Machine %s has condition %s, but no etcd", m.Name, t)
			}
		}
	}
	pods := &corev1.PodList{}
	if err := c.Workload().client.List(c.t.Context(), pods, client.MatchingLabels{"component": "etcd"}); err != nil || len(pods.Items) > 0 {
		return fmt.Errorf("%d etcd Pods, %w", len(pods.Items), err)
	}
	return nil
}

// TestExternalEtcd scales, upgrades and deletes a control plane whose etcd is not managed by Cluster API.
func TestExternalEtcd(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	w.etcdSecrets("c")
	c := w.Plain(Plain{ControlPlanes: 1, Workers: 1, ClusterConfiguration: externalEtcd}.String())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.NodesMatch, c.withoutEtcd, c.ExplainsNothing)
	still := c.Always("the control plane stays available", AvailableControlPlane(1), AtMost(4, 1))
	c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](3) })
	c.Eventually("the control plane is scaled up", Ready, ControlPlanes(3), c.NodesMatch, c.withoutEtcd)
	before := c.Snapshot()
	c.markUnhealthy(before.ControlPlane()[0])
	c.Eventually("the unhealthy Machine is replaced", Ready, ControlPlanes(3), c.NodesMatch, c.withoutEtcd, func(p *Snapshot) error {
		if _, left := identities(p.ControlPlane())[before.ControlPlane()[0].Name]; left {
			return fmt.Errorf("Machine %s is left", before.ControlPlane()[0].Name)
		}
		return nil
	})
	before = c.Snapshot()
	c.plane(func(k *controlplanev1.KubeadmControlPlane) {
		k.Spec.Version = newer
		etcd := k.Spec.KubeadmConfigSpec.ClusterConfiguration.Etcd.External
		etcd.Endpoints = append(etcd.Endpoints, "https://etcd-2.example.com:2379")
	})
	c.Eventually("the control plane is upgraded, with another endpoint of etcd", Ready, ControlPlanes(3), NewMachines((*Snapshot).ControlPlane, before), c.NodesMatch, c.withoutEtcd)
	c.plane(func(k *controlplanev1.KubeadmControlPlane) { k.Spec.Replicas = ptr.To[int32](1) })
	c.Eventually("the control plane is scaled down", Ready, ControlPlanes(1), c.NodesMatch, c.withoutEtcd)
	still()
	if config := c.kubeadmConfig(); !strings.Contains(config, "https://etcd-2.example.com:2379") || strings.Contains(config, "local:") {
		t.Errorf("kubeadm's configuration in the cluster must have the endpoints of external etcd: %s", config)
	}
	c.Gone()
	for _, purpose := range []pki.Purpose{pki.EtcdCA, pki.APIServerEtcdClient} {
		if err := w.Client.Get(t.Context(), pki.SecretKey(c.Key(), purpose), &corev1.Secret{}); err != nil {
			t.Errorf("the user's Secret must be kept: %v", err)
		}
	}
}

// markUnhealthy marks a Machine for remediation, as a MachineHealthCheck does.
func (c *Subject) markUnhealthy(m clusterv1.Machine) {
	c.t.Helper()
	before := m.DeepCopy()
	for _, mark := range []clusterv1.Condition{
		FalseCondition(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.ConditionSeverityWarning, clusterv1.UnhealthyNodeConditionReason, ""),
		FalseCondition(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, ""),
	} {
		mark.LastTransitionTime = metav1.Now()
		SetCondition(&m, mark)
	}
	if err := c.Client.Status().Patch(c.t.Context(), &m, client.MergeFrom(before)); err != nil {
		c.t.Fatalf("marking Machine %s: %v", m.Name, err)
	}
}

// kubeadmConfig returns the ClusterConfiguration that the workload cluster has.
func (c *Subject) kubeadmConfig() string {
	c.t.Helper()
	config := &corev1.ConfigMap{}
	if err := c.Workload().client.Get(c.t.Context(), client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kubeadm-config"}, config); err != nil {
		c.t.Fatal(err)
	}
	return config.Data["ClusterConfiguration"]
}

// TestMissingSecretsOfUsers reports which Secret of the user is missing or incomplete, and continues when it is complete.
func TestMissingSecretsOfUsers(t *testing.T) {
	t.Parallel()
	complains := func(words ...string) Condition {
		return func(p *Snapshot) error {
			if len(p.ControlPlanes.Items) == 0 {
				return fmt.Errorf("no control plane")
			}
			have := FindCondition(&p.ControlPlanes.Items[0], controlplanev1.CertificatesAvailableCondition)
			for _, word := range words {
				if have == nil || have.Status != corev1.ConditionFalse || !strings.Contains(have.Message, word) {
					return fmt.Errorf("condition %+v does not contain %q", have, word)
				}
			}
			return nil
		}
	}
	t.Run("external etcd without its Secrets", func(t *testing.T) {
		t.Parallel()
		w := shared.World(t)
		c := w.Plain(Plain{ControlPlanes: 1, ClusterConfiguration: externalEtcd}.String())
		c.Eventually("the missing Secret is named", complains("c-etcd", "does not exist"),
			c.Explains("CertificatesUnavailable KubeadmControlPlane", "c-etcd", "does not exist"))
		w.etcdSecrets("c")
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), c.NodesMatch, c.withoutEtcd)
		c.Delete()
	})
	t.Run("an etcd CA without key, but etcd is not external", func(t *testing.T) {
		t.Parallel()
		w := shared.World(t)
		w.etcdSecrets("c")
		c := w.Plain(Plain{ControlPlanes: 1}.String())
		c.Eventually("the missing key is named", complains("c-etcd", pki.PrivateKeyKey), c.Explains("CertificatesUnavailable KubeadmControlPlane", "c-etcd"))
		c.Delete()
	})
}
