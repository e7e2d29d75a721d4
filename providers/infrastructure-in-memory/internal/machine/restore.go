package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/bootstrap"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd/database"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// refound starts etcd with the data that the bootstrap data restores, or without objects if etcd is lost, when kubeadm init runs. That is
// before the Node is created, because it changes all objects. failed is why the bootstrap fails on the machine.
func (c *Controller) refound(ctx context.Context, s *scope) (failed, err error) {
	if s.data.Action != bootstrap.Init || len(s.data.ExternalEtcd) > 0 || s.running.Restored ||
		condition.IsTrue(s.obj.Object, inmemoryv1.NodeProvisionedCondition) {
		return nil, nil
	}
	machine := etcd.Machine{Name: s.obj.Name, UID: s.obj.UID}
	if runs, err := etcd.Runs(s.group, machine); runs || err != nil {
		return nil, err
	}
	lost, err := etcd.Lost(s.group)
	if err != nil || !lost && s.data.Restore == nil {
		return nil, err
	}
	var data *database.Directory
	if s.data.Restore != nil {
		if data, err = s.data.Restore.Fetch(ctx); err != nil {
			return err, nil
		}
	}
	if err := etcd.Refound(s.group, machine, data); err != nil {
		return err, nil
	}
	// kubeadm init uploads its configuration, and publishes the CA, which may be another one than that of the backup: see addons.
	if err := store.Remove[corev1.ConfigMap](s.group, metav1.NamespaceSystem, kubeadmConfigName); err != nil {
		return nil, fmt.Errorf("removing the restored configuration of kubeadm: %w", err)
	}
	if err := store.Remove[corev1.ConfigMap](s.group, metav1.NamespacePublic, clusterInfoName); err != nil {
		return nil, fmt.Errorf("removing the restored %s: %w", clusterInfoName, err)
	}
	return nil, nil
}
