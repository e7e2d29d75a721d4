package machineset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/contract"
	"sigs.k8s.io/cluster-api/provider/ownership"
	"sigs.k8s.io/cluster-api/provider/step"
)

// complete makes the objects of Machines whose creation was interrupted before they were made. That is decided on the Machine
// as the API server has it: for one that is being deleted, or is gone, nothing must be made again.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	var made []client.Object
	for _, m := range s.machines {
		lacks, err := c.lacks(ctx, s.set, m)
		if err != nil || !lacks {
			s.report(err)
			continue
		}
		live := &clusterv1.Machine{}
		err = c.Live.Get(ctx, client.ObjectKeyFromObject(m), live)
		if err != nil || live.UID != m.UID {
			s.report(client.IgnoreNotFound(err))
			continue
		}
		objects, err := c.makeObjects(ctx, s, live)
		made = append(made, objects...)
		s.report(err)
	}
	c.await(ctx, made)
	return step.Done(), nil
}

// clone is an object to make from a template.
type clone struct {
	from, to *corev1.ObjectReference
	// failed is the reason for MachinesCreated not to be True if that does not succeed.
	failed string
}

// clones are the objects that a Machine still needs from its MachineSet: none when it is being deleted, no bootstrap config
// when it has its data, and no infrastructure machine when it had one, whatever has become of it since.
func clones(set *clusterv1.MachineSet, m *clusterv1.Machine) []clone {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	var out []clone
	template := set.Spec.Template.Spec.DeepCopy()
	if template.Bootstrap.ConfigRef != nil && m.Spec.Bootstrap.ConfigRef != nil && m.Spec.Bootstrap.DataSecretName == nil {
		out = append(out, clone{template.Bootstrap.ConfigRef, m.Spec.Bootstrap.ConfigRef, clusterv1.BootstrapTemplateCloningFailedReason})
	}
	if !m.Status.InfrastructureReady && m.Spec.ProviderID == nil {
		out = append(out, clone{&template.InfrastructureRef, &m.Spec.InfrastructureRef, clusterv1.InfrastructureTemplateCloningFailedReason})
	}
	return out
}

// lacks is whether something that a Machine needs is not there.
func (c *Controller) lacks(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine) (bool, error) {
	for _, x := range clones(set, m) {
		_, err := c.external.Get(ctx, x.to, m.Namespace)
		if err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
	}
	return false, nil
}

// makeObjects makes the bootstrap config and the infrastructure machine that a Machine refers to, unless
// they are there. Their controller is the Machine.
func (c *Controller) makeObjects(ctx context.Context, s *scope, m *clusterv1.Machine) ([]client.Object, error) {
	var made []client.Object
	for _, x := range clones(s.set, m) {
		obj, err := c.clone(ctx, s, m, x)
		if err != nil {
			return made, c.cloningFailed(s, x.failed, err)
		}
		if obj != nil {
			made = append(made, obj)
		}
	}
	return made, nil
}

func (c *Controller) cloningFailed(s *scope, reason string, err error) error {
	s.incomplete = true
	condition.Set(s.set, condition.False(clusterv1.MachinesCreatedCondition, clusterv1.ConditionSeverityError, reason, "%v", err))
	return err
}

// clone makes an object, and returns it if it was not there.
func (c *Controller) clone(ctx context.Context, s *scope, m *clusterv1.Machine, x clone) (client.Object, error) {
	if _, err := c.external.Get(ctx, x.to, m.Namespace); !apierrors.IsNotFound(err) {
		return nil, err
	}
	template, err := c.external.Get(ctx, x.from, s.set.Namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the template of Machine %s: %w", m.Name, err)
	}
	owner := ownership.Reference(m, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind), true)
	obj, err := contract.Clone(contract.CloneInput{
		Template: template, Name: x.to.Name, Namespace: m.Namespace, ClusterName: m.Spec.ClusterName, Owner: &owner,
		Labels: machineLabels(s.set), Annotations: s.set.Spec.Template.Annotations,
	})
	if err != nil {
		return nil, err
	}
	err = c.Client.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return obj, nil
}
