package controlplane

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

// own puts the finalizer on the control plane, before anything exists that it protects, brings the version in the
// reference to the infrastructure template up to date, and makes the template belong to the Cluster.
func (c *Controller) own(ctx context.Context, s *scope) (step.Result, error) {
	if s.kcp.Labels[clusterv1.ClusterNameLabel] != s.cluster.Name {
		if s.kcp.Labels == nil {
			s.kcp.Labels = map[string]string{}
		}
		s.kcp.Labels[clusterv1.ClusterNameLabel] = s.cluster.Name
	}
	controllerutil.AddFinalizer(s.kcp, controlplanev1.KubeadmControlPlaneFinalizer)
	if err := c.ownTemplate(ctx, s); err != nil {
		return step.Result{}, err
	}
	return step.Checkpoint(), nil
}

// ownTemplate: moving and deleting a Cluster takes the template along. A missing template is reported where it is
// needed.
func (c *Controller) ownTemplate(ctx context.Context, s *scope) error {
	ref := &s.kcp.Spec.MachineTemplate.InfrastructureRef
	if _, err := c.External.Versions.Refresh(ctx, ref); err != nil {
		return err
	}
	template, err := c.External.Get(ctx, ref, s.kcp.Namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the infrastructure template: %w", err)
	}
	for _, owner := range template.GetOwnerReferences() {
		if owner.UID == s.cluster.UID {
			return nil
		}
	}
	owner := ownership.Reference(s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
	own := func() { template.SetOwnerReferences(append(template.GetOwnerReferences(), owner)) }
	if err := c.Patch(ctx, template, true, own); err != nil {
		return fmt.Errorf("making Cluster %s own %s %s: %w", s.key(), ref.Kind, ref.Name, err)
	}
	return nil
}

// infrastructure waits for the Cluster's infrastructure: Machines are placed in it.
func (c *Controller) infrastructure(_ context.Context, s *scope) (step.Result, error) {
	if !s.cluster.Status.InfrastructureReady {
		return step.Wait("the infrastructure of Cluster " + s.key().String()), nil
	}
	return step.Done(), nil
}

// endpoint waits for the address of the API server: kubeconfig and Machines need it.
func (c *Controller) endpoint(_ context.Context, s *scope) (step.Result, error) {
	if !s.cluster.Spec.ControlPlaneEndpoint.IsValid() {
		return step.Wait("the control plane endpoint of Cluster " + s.key().String()), nil
	}
	return step.Done(), nil
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
