package controlplane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// own adds the finalizer before anything exists that it protects, and makes the Cluster an owner of the infrastructure template.
func (c *Controller) own(ctx context.Context, s *scope) (step.Result, error) {
	if s.KCP.Labels[clusterv1.ClusterNameLabel] != s.Cluster.Name {
		if s.KCP.Labels == nil {
			s.KCP.Labels = map[string]string{}
		}
		s.KCP.Labels[clusterv1.ClusterNameLabel] = s.Cluster.Name
	}
	controllerutil.AddFinalizer(s.KCP, controlplanev1.KubeadmControlPlaneFinalizer)
	if err := c.ownTemplate(ctx, s); err != nil {
		return step.Done(), err
	}
	return step.Checkpoint(), nil
}

// ownTemplate makes the Cluster an owner of the template, so that it is moved and deleted with the Cluster. A missing template
// is an error only when a Machine is created.
func (c *Controller) ownTemplate(ctx context.Context, s *scope) error {
	ref := &s.KCP.Spec.MachineTemplate.Spec.InfrastructureRef
	template, err := c.external.Get(ctx, ref, s.KCP.Namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the infrastructure template: %w", err)
	}
	for _, owner := range template.GetOwnerReferences() {
		if owner.UID == s.Cluster.UID {
			return nil
		}
	}
	owner := ownership.Reference(s.Cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
	own := func() { template.SetOwnerReferences(append(template.GetOwnerReferences(), owner)) }
	if err := c.Patch(ctx, template, own, step.IfUnchanged); err != nil {
		return fmt.Errorf("making Cluster %s an owner of %s %s: %w", s.Key(), ref.Kind, ref.Name, err)
	}
	return nil
}
