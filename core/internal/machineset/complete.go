package machineset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/condition"
	"sigs.k8s.io/cluster-api/internal/contract"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/step"
)

// complete makes the objects of Machines whose creation was interrupted before they were made.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	for _, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() || m.Status.InfrastructureReady && m.Spec.Bootstrap.DataSecretName != nil {
			continue
		}
		if err := c.makeObjects(ctx, s, m); err != nil {
			return step.Done(), err
		}
	}
	return step.Done(), nil
}

// makeObjects makes the bootstrap config and the infrastructure machine that a Machine refers to, unless
// they are there. Their controller is the Machine.
func (c *Controller) makeObjects(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	template := s.set.Spec.Template.Spec
	if template.Bootstrap.ConfigRef != nil && m.Spec.Bootstrap.ConfigRef != nil && m.Spec.Bootstrap.DataSecretName == nil {
		if err := c.clone(ctx, s, m, template.Bootstrap.ConfigRef, m.Spec.Bootstrap.ConfigRef); err != nil {
			return c.cloningFailed(s, clusterv1.BootstrapTemplateCloningFailedReason, err)
		}
	}
	if m.Status.InfrastructureReady || m.Spec.ProviderID != nil {
		return nil // there was one: what has become of it is for the Machine to tell
	}
	if err := c.clone(ctx, s, m, &template.InfrastructureRef, &m.Spec.InfrastructureRef); err != nil {
		return c.cloningFailed(s, clusterv1.InfrastructureTemplateCloningFailedReason, err)
	}
	return nil
}

func (c *Controller) cloningFailed(s *scope, reason string, err error) error {
	condition.Set(s.set, condition.False(clusterv1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, reason, "%v", err))
	return err
}

func (c *Controller) clone(ctx context.Context, s *scope, m *clusterv1.Machine, from, to *corev1.ObjectReference) error {
	if _, err := c.external.Get(ctx, to, m.Namespace); !apierrors.IsNotFound(err) {
		return err
	}
	template, err := c.external.Get(ctx, from, s.set.Namespace)
	if err != nil {
		return fmt.Errorf("reading the template of Machine %s: %w", m.Name, err)
	}
	owner := ownership.Reference(m, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), true)
	obj, err := contract.Clone(contract.CloneInput{
		Template: template, Name: to.Name, Namespace: m.Namespace, ClusterName: m.Spec.ClusterName, Owner: &owner,
		Labels: machineLabels(s.set), Annotations: s.set.Spec.Template.Annotations,
	})
	if err != nil {
		return err
	}
	err = c.Client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	step.AwaitVisible(ctx, c.Client, obj)
	return nil
}
