package machine

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/etcd"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// remove removes the machine from its cluster. It has nothing to do if the whole workload cluster is deleted or being
// deleted.
func (c *Controller) remove(ctx context.Context, s *scope) (step.Result, error) {
	key := types.NamespacedName{Namespace: s.obj.Namespace, Name: s.obj.Labels[clusterv1.ClusterNameLabel]}
	if key.Name == "" && s.machine != nil {
		key.Name = s.machine.Spec.ClusterName
	}
	if err := c.reopen(ctx, s); err != nil {
		return step.Done(), err
	}
	if group, ok := c.lab.Cloud.Group(key); ok {
		if err := c.removeOwn(group, key, etcd.Machine{Name: s.obj.Name, UID: s.obj.UID}); err != nil && !errors.Is(err, store.ErrDeleted) {
			return step.Done(), err
		}
	}
	controllerutil.RemoveFinalizer(s.obj.Object, c.kinds.MachineFinalizer)
	return step.Stop(), nil
}

// reopen loads the workload cluster if this process has not done so yet: its journal has the machine. It does not open the
// cluster's endpoint.
func (c *Controller) reopen(ctx context.Context, s *scope) error {
	if s.cluster == nil || !s.cluster.Spec.InfrastructureRef.IsDefined() {
		return nil
	}
	infrastructure, ok, err := c.infrastructure(ctx, s.cluster)
	if err != nil || !ok || !infrastructure.DeletionTimestamp.IsZero() {
		return client.IgnoreNotFound(err)
	}
	_, err = c.lab.Cloud.EnsureGroup(client.ObjectKeyFromObject(s.cluster), infrastructure.UID)
	return err
}

// removeOwn removes the machine of this object. The cluster is from a label that users can write: it may have another machine
// with this name, which belongs to another object.
func (c *Controller) removeOwn(group *cloud.Group, key types.NamespacedName, machine etcd.Machine) error {
	if !group.HasMachine(machine.Name, machine.UID) {
		return etcd.Forget(group, machine)
	}
	return c.removeMachine(group, key, machine)
}

// removeMachine removes a machine and everything that runs on it. Its etcd member remains unless it was removed before, and
// counts against the quorum, as after a power failure.
func (c *Controller) removeMachine(group *cloud.Group, key types.NamespacedName, machine etcd.Machine) error {
	if err := store.Remove[corev1.Node](group, "", machine.Name); err != nil {
		return fmt.Errorf("removing the Node: %w", err)
	}
	for _, component := range []string{"kube-scheduler", "kube-controller-manager", "etcd", "kube-apiserver"} {
		if err := store.Remove[corev1.Pod](group, metav1.NamespaceSystem, component+"-"+machine.Name); err != nil {
			return fmt.Errorf("stopping %s: %w", component, err)
		}
	}
	if endpoint, ok := c.lab.Server.Endpoint(key); ok {
		endpoint.StopEtcd(machine.Name)
		endpoint.StopServer(machine.Name)
	}
	return errors.Join(group.DeleteMachine(machine.Name), etcd.Forget(group, machine))
}
