package recovery

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// kubeadmControlPlane is the kind of control planes that can be held.
const kubeadmControlPlane = "KubeadmControlPlane"

// controlPlane reads the Cluster and the Machines of its control plane. They are not cached in this manager.
func (c *Controller) controlPlane(ctx context.Context, s *scope) (step.Result, error) {
	cluster := &clusterv1.Cluster{}
	err := c.Live.Get(ctx, s.key(), cluster)
	if err != nil && !apierrors.IsNotFound(err) {
		return step.Result{}, fmt.Errorf("reading Cluster %s: %w", s.key().Name, err)
	}
	if reason := unfitCluster(s.key().Name, cluster, err); reason != "" {
		return c.refuse(ctx, s, reason)
	}
	s.controlPlane = client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Spec.ControlPlaneRef.Name}
	s.machines, err = c.machines(ctx, s.key())
	return step.Done(), err
}

// unfitCluster returns why the control plane of a Cluster cannot be recovered; err is not nil if it does not exist.
func unfitCluster(name string, cluster *clusterv1.Cluster, err error) string {
	switch {
	case err != nil:
		return fmt.Sprintf("Cluster %s does not exist", name)
	case !cluster.DeletionTimestamp.IsZero():
		return fmt.Sprintf("Cluster %s is being deleted", cluster.Name)
	case ptr.Deref(cluster.Spec.Paused, false):
		return fmt.Sprintf("Cluster %s is paused, so that no provider acts: set spec.paused to false", cluster.Name)
	case cluster.Spec.ControlPlaneRef.Kind != kubeadmControlPlane:
		return fmt.Sprintf("the control plane of Cluster %s is of kind %q: only %s is supported", cluster.Name,
			cluster.Spec.ControlPlaneRef.Kind, kubeadmControlPlane)
	}
	return ""
}

// machines returns the control plane Machines of a Cluster.
func (c *Controller) machines(ctx context.Context, cluster client.ObjectKey) ([]clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := c.Live.List(ctx, list, client.InNamespace(cluster.Namespace), client.HasLabels{clusterv1.MachineControlPlaneLabel},
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, fmt.Errorf("listing the control plane Machines of Cluster %s: %w", cluster.Name, err)
	}
	return list.Items, nil
}

// machine returns a control plane Machine, or nil.
func (s *scope) machine(name string) *clusterv1.Machine {
	for i := range s.machines {
		if s.machines[i].Name == name {
			return &s.machines[i]
		}
	}
	return nil
}
