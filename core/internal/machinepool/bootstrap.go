package machinepool

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/reference"
	"sigs.k8s.io/cluster-api/provider/step"
)

// bootstrap waits for the bootstrap provider and copies the name of the data Secret. The name changes when the pool refers to
// another config; until the data of the new config exists, the infrastructure provider continues to use the old Secret.
func (c *Controller) bootstrap(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	bootstrap := &p.Spec.Template.Spec.Bootstrap
	ref := bootstrap.ConfigRef
	if ref == nil {
		p.Status.BootstrapReady = bootstrap.DataSecretName != nil
		return step.Done(), nil
	}
	obj, err := c.adoptObject(ctx, s, ref)
	if err != nil {
		return step.Done(), err
	}
	if obj == nil {
		p.Status.BootstrapReady = false
		return step.Wait(ref.Kind + " " + ref.Name + " to exist").Because(clusterv1.WaitingForDataSecretFallbackReason), nil
	}
	return reference.CopyBootstrap(contract.BootstrapOf(obj), &p.Status.BootstrapReady, bootstrap)
}

// adoptObject returns the object of a reference, nil if it does not exist. It makes the MachinePool the object's controller, and
// copies a terminal failure to the MachinePool.
func (c *Controller) adoptObject(ctx context.Context, s *scope, ref *corev1.ObjectReference) (*unstructured.Unstructured, error) {
	p := s.pool
	obj, err := c.follow.Follow(ctx, ref, p.Namespace)
	if err != nil || obj == nil {
		return nil, err
	}
	if err := c.follow.Own(ctx, obj, p, p.Spec.ClusterName); err != nil {
		return nil, err
	}
	return obj, reference.CopyFailure(contract.ObjectOf(obj), &p.Status.FailureReason, &p.Status.FailureMessage)
}
