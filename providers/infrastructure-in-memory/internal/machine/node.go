package machine

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const controlPlaneNodeLabel = "node-role.kubernetes.io/control-plane"

// node creates the Node.
func (c *Controller) node(ctx context.Context, s *scope) (step.Result, error) {
	if gaveUp(s.obj, inmemoryv1.NodeProvisionedCondition) {
		return step.Stop(), nil
	}
	remaining, err := c.remaining(s, "node", inmemoryv1.NodeProvisionedCondition, inmemoryv1.VMProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "the kubelet")
	}
	if s.dead && !condition.IsTrue(s.obj.Object, inmemoryv1.NodeProvisionedCondition) {
		// No kubelet has run yet. Removing the fault triggers a reconcile.
		return step.Wait("removal of the machine from deadMachines in annotation " + inmemoryv1.FaultsAnnotation + " of the " +
			c.kinds.ClusterKind).Because(inmemoryv1.WaitingForStartupTimeoutReason), nil
	}
	if err := c.joins(s); err != nil {
		return c.kubeadmFails(s, inmemoryv1.NodeProvisionedCondition, err)
	}
	if failed, err := c.refound(ctx, s); err != nil {
		return step.Done(), err
	} else if failed != nil {
		return c.kubeadmFails(s, inmemoryv1.NodeProvisionedCondition, failed)
	}
	since := metav1.NewTime(c.Clock.Now())
	if provisioned := condition.Get(s.obj.Object, inmemoryv1.NodeProvisionedCondition); provisioned != nil &&
		provisioned.Status == corev1.ConditionTrue {
		since = provisioned.LastTransitionTime // It was running before a restart of this process.
	}
	// A kubelet only registers its Node when it starts. Without a Node, as after a restore of older objects, it cannot report.
	if s.running.Restored || !condition.IsTrue(s.obj.Object, inmemoryv1.NodeProvisionedCondition) {
		if _, err := store.Ensure(s.group, newNode(s, since)); err != nil {
			return step.Done(), fmt.Errorf("creating the Node: %w", err)
		}
	}
	if !s.isControlPlane() {
		return step.Stop().WithConditions(condition.True(inmemoryv1.NodeProvisionedCondition)), nil
	}
	return step.Done(), nil
}

// joins returns why kubeadm fails to register the machine's Node, or nil. If the Node exists, kubeadm has succeeded before.
func (c *Controller) joins(s *scope) error {
	if s.running.Restored || condition.IsTrue(s.obj.Object, inmemoryv1.NodeProvisionedCondition) {
		return nil
	}
	node, err := store.Get[corev1.Node](s.group, "", s.obj.Name)
	if err == nil && node.UID == nodeUID(s.obj) {
		return nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if s.data.Action != bootstrap.Unknown && s.data.ControlPlane != s.isControlPlane() {
		return errors.New("the bootstrap data is for another role: it must match the label cluster.x-k8s.io/control-plane of the Machine")
	}
	etcdServes, err := etcd.Serves(s.group)
	if err != nil {
		return err
	}
	found := bootstrap.Cluster{
		Group:   s.group,
		Answers: etcdServes && s.endpoint.Serves() && !s.group.Faults().Unresponsive,
		CAs:     discoverable(s),
	}
	return s.data.Check(found, s.obj.Name, c.Clock.Now())
}

// discoverable returns the CAs in what kubeadm init has published, or that of the API server if it has published nothing.
func discoverable(s *scope) []*x509.Certificate {
	info, err := store.Get[corev1.ConfigMap](s.group, metav1.NamespacePublic, clusterInfoName)
	if err == nil {
		if config, err := clientcmd.Load([]byte(info.Data[clusterInfoKey])); err == nil && config.Clusters[""] != nil {
			if all, err := cert.ParseCertsPEM(config.Clusters[""].CertificateAuthorityData); err == nil {
				return all
			}
		}
	}
	if ca := s.endpoint.Authority(); ca != nil {
		return []*x509.Certificate{ca}
	}
	return nil
}

func nodeUID(obj kinds.Machine) types.UID { return cloud.UID(string(obj.UID), "node") }

// newNode returns the Node as a kubelet registers it at a time.
func newNode(s *scope, at metav1.Time) *corev1.Node {
	version := s.machine.Spec.Version
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.obj.Name, UID: nodeUID(s.obj),
			Labels: map[string]string{
				corev1.LabelHostname: s.obj.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{ProviderID: s.obj.ProviderID()},
		Status: corev1.NodeStatus{
			Conditions: machines.NodeConditions(at),
			// kubectl describe computes the Pods' share of it.
			Capacity: machines.Capacity(), Allocatable: machines.Capacity(),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: s.obj.Name}},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: version, OperatingSystem: "linux", Architecture: "amd64",
				ContainerRuntimeVersion: "in-memory://", OSImage: "in-memory", KernelVersion: "in-memory",
			},
		},
	}
	if zone := cmp.Or(s.machine.Spec.FailureDomain, s.obj.FailureDomain()); zone != "" {
		node.Labels[corev1.LabelTopologyZone] = zone // as the cloud provider of a real cloud does
	}
	if s.isControlPlane() {
		node.Labels[controlPlaneNodeLabel] = ""
		node.Spec.Taints = []corev1.Taint{{Key: controlPlaneNodeLabel, Effect: corev1.TaintEffectNoSchedule}}
	}
	return node
}
