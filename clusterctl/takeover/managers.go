package takeover

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages"
)

// What identifies managers in every version of Cluster API: the labels of their Deployments, and the Lease of those of the kubeadm control
// plane.
const (
	coreLabel, bootstrapLabel, controlPlaneLabel = "cluster-api", "bootstrap-kubeadm", "control-plane-kubeadm"
	controlPlaneLease                            = "kubeadm-control-plane-manager-leader-election-capi"
)

// readManagers reads the Deployments of managers, and since when the control plane managers have their leader.
func (o *Objects) readManagers(ctx context.Context, c client.Reader) error {
	for _, label := range []string{coreLabel, bootstrapLabel, controlPlaneLabel} {
		list := &appsv1.DeploymentList{}
		if err := c.List(ctx, list, client.MatchingLabels{clusterv1.ProviderNameLabel: label}); err != nil {
			return fmt.Errorf("listing Deployments of %s: %w", label, err)
		}
		for i := range list.Items {
			d := &list.Items[i]
			o.Managers = append(o.Managers, managerOf(d))
			if label == controlPlaneLabel {
				if err := o.readLease(ctx, c, d.Namespace); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func managerOf(d *appsv1.Deployment) Manager {
	status := d.Status
	m := Manager{
		Namespace: d.Namespace, Name: d.Name,
		RolledOut: status.ObservedGeneration >= d.Generation && status.AvailableReplicas > 0 && status.UpdatedReplicas == status.Replicas,
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if m.Image == "" || container.Name == packages.ManagerContainer {
			m.Image = container.Image
		}
	}
	return m
}

func (o *Objects) readLease(ctx context.Context, c client.Reader, namespace string) error {
	lease := &coordinationv1.Lease{}
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: controlPlaneLease}, lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading Lease %s/%s: %w", namespace, controlPlaneLease, err)
	}
	if ptr.Deref(lease.Spec.HolderIdentity, "") != "" {
		o.Led = lease.Spec.AcquireTime
	}
	return nil
}
