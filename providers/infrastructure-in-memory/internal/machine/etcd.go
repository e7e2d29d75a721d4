package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// errNoEtcdClient is why kubeadm fails: it checks that the files in its configuration exist.
var errNoEtcdClient = errors.New("etcd is external, but the bootstrap data does not contain its CA and a client certificate with its key")

// etcd starts the machine's etcd member, unless etcd is external: its endpoints are not contacted.
func (c *Controller) etcd(ctx context.Context, s *scope) (step.Result, error) {
	if gaveUp(s.obj, inmemoryv1.EtcdProvisionedCondition) {
		return step.Stop(), nil
	}
	remaining, err := c.remaining(s, "etcd", inmemoryv1.EtcdProvisionedCondition, inmemoryv1.NodeProvisionedCondition)
	if err != nil {
		return step.Done(), err
	}
	if remaining > 0 {
		return starting(remaining, "etcd")
	}
	if s.externalEtcd, err = c.externalEtcd(ctx, s); err != nil {
		return step.Done(), err
	}
	if s.externalEtcd {
		if s.data.Action != bootstrap.Unknown && !s.data.EtcdClient {
			return c.kubeadmFails(s, inmemoryv1.EtcdProvisionedCondition, errNoEtcdClient)
		}
		return step.Done(), nil
	}
	machine := etcd.Machine{Name: s.obj.Name, UID: s.obj.UID}
	if err := c.member(s, machine); err != nil {
		if errors.Is(err, etcd.ErrNoCluster) || errors.Is(err, etcd.ErrNoQuorum) || errors.Is(err, etcd.ErrPeerURLExists) ||
			errors.Is(err, etcd.ErrNoPeer) {
			return c.kubeadmFails(s, inmemoryv1.EtcdProvisionedCondition, err)
		}
		return step.Done(), err
	}
	if err := c.etcdPod(s, machine); err != nil {
		return step.Done(), err
	}
	if !s.endpoint.HasEtcd(s.obj.Name) {
		ca, err := c.issuer().CA(ctx, client.ObjectKeyFromObject(s.cluster), pki.EtcdCA)
		if err != nil {
			return step.Done(), err
		}
		name := "etcd-" + s.obj.Name
		serving, err := c.issuer().Serving(ca, s.endpoint, name, name)
		if err != nil {
			return step.Done(), err
		}
		s.endpoint.StartEtcd(s.obj.Name, serving)
	}
	return step.Done(), nil
}

// member makes the machine a member of the cluster's etcd, as kubeadm does: kubeadm init always creates an etcd cluster, even
// if one exists; kubeadm join joins the existing one.
func (c *Controller) member(s *scope, machine etcd.Machine) error {
	if s.running.Restored || condition.IsTrue(s.obj.Object, inmemoryv1.EtcdProvisionedCondition) {
		return etcd.Restore(s.group, machine)
	}
	switch s.data.Action {
	case bootstrap.Init:
		return etcd.Found(s.group, machine)
	case bootstrap.Join:
		return etcd.Join(s.group, machine)
	}
	// For bootstrap data in an unsupported format, assume what makes sense.
	clusters, err := etcd.Clusters(s.group)
	if err != nil {
		return err
	}
	if len(clusters) == 0 {
		return etcd.Found(s.group, machine)
	}
	return etcd.Join(s.group, machine)
}

func (c *Controller) etcdPod(s *scope, machine etcd.Machine) error {
	annotations, err := etcd.Annotations(s.group, machine)
	if err != nil {
		return err
	}
	pod := newPod(s, "etcd")
	maps.Copy(pod.Annotations, annotations)
	tag, err := etcdTag(s)
	if err != nil {
		return err
	}
	pod.Spec.Containers[0].Image = "registry.k8s.io/etcd:" + tag
	if _, err := store.Ensure(s.group, pod); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	return nil
}

// etcdTag returns the image tag of the machine's etcd: kubeadm init knows it from its configuration, kubeadm join from what kubeadm init
// has stored in the cluster, which control planes change before they upgrade.
func etcdTag(s *scope) (string, error) {
	tag := s.data.EtcdTag
	if s.data.Action != bootstrap.Init {
		stored, err := store.Get[corev1.ConfigMap](s.group, metav1.NamespaceSystem, kubeadmConfigName)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading the configuration of kubeadm: %w", err)
		}
		if err == nil {
			tag = bootstrap.EtcdTag(stored.Data[clusterConfigurationKey])
		}
	}
	return cmp.Or(tag, kubeadm.DefaultEtcdTag(s.machine.Spec.Version)), nil
}

// externalEtcd reports whether the cluster's etcd does not run on its machines. kubeadm init knows from its configuration, kubeadm join
// from what kubeadm init has stored in the cluster. After a restart that may be lost; then the CA of etcd has no key if etcd is external.
func (c *Controller) externalEtcd(ctx context.Context, s *scope) (bool, error) {
	if len(s.data.ExternalEtcd) > 0 {
		return true, nil
	}
	stored, err := store.Get[corev1.ConfigMap](s.group, metav1.NamespaceSystem, kubeadmConfigName)
	switch {
	case err == nil && s.data.Action != bootstrap.Init:
		return bootstrap.UsesExternalEtcd(stored.Data[clusterConfigurationKey]), nil
	case client.IgnoreNotFound(err) != nil:
		return false, err
	case !s.running.Restored:
		return false, nil
	}
	ca, err := c.issuer().CA(ctx, client.ObjectKeyFromObject(s.cluster), pki.EtcdCA)
	if err != nil {
		return false, err
	}
	return ca.Key == nil, nil
}
