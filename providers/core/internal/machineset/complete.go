package machineset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// complete creates the objects of Machines whose creation was interrupted. It reads the Machine from the API server first:
// objects of a Machine that is being deleted or no longer exists must not be created again.
func (c *Controller) complete(ctx context.Context, s *scope) (step.Result, error) {
	var created []client.Object
	for _, m := range s.machines {
		incomplete, err := c.incomplete(ctx, s.set, m)
		if err != nil || !incomplete {
			s.report(err)
			continue
		}
		live := &clusterv1.Machine{}
		err = c.Live.Get(ctx, client.ObjectKeyFromObject(m), live)
		if err != nil || live.UID != m.UID {
			s.report(client.IgnoreNotFound(err))
			continue
		}
		objects, err := c.createObjects(ctx, s, live)
		created = append(created, objects...)
		s.report(err)
	}
	c.AwaitVisible(ctx, created...)
	return step.Done(), nil
}

// clone is an object to create from a template.
type clone struct {
	from, to *clusterv1.ContractVersionedObjectReference
	// failed is the reason of MachinesCreated if the creation fails.
	failed string
}

// clones returns the objects that a Machine still needs from its MachineSet: none if it is being deleted, no bootstrap config
// if it has its data, and no infrastructure machine if it had one before, even if that no longer exists.
func clones(set *clusterv1.MachineSet, m *clusterv1.Machine) []clone {
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	var out []clone
	template := &set.Spec.Template.Spec
	config := clone{&template.Bootstrap.ConfigRef, &m.Spec.Bootstrap.ConfigRef, clusterv1.BootstrapTemplateCloningFailedV1Beta1Reason}
	if config.from.IsDefined() && config.to.IsDefined() && ptr.Deref(m.Spec.Bootstrap.DataSecretName, "") == "" {
		out = append(out, config)
	}
	if !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) && m.Spec.ProviderID == "" {
		out = append(out,
			clone{&template.InfrastructureRef, &m.Spec.InfrastructureRef, clusterv1.InfrastructureTemplateCloningFailedV1Beta1Reason})
	}
	return out
}

// incomplete reports whether an object that a Machine needs does not exist.
func (c *Controller) incomplete(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine) (bool, error) {
	for _, x := range clones(set, m) {
		_, err := c.external.Get(ctx, x.to, m.Namespace)
		if err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
	}
	return false, nil
}

// createObjects creates the bootstrap config and the infrastructure machine that a Machine refers to, unless they exist. The
// Machine is their controller.
func (c *Controller) createObjects(ctx context.Context, s *scope, m *clusterv1.Machine) ([]client.Object, error) {
	var created []client.Object
	for _, x := range clones(s.set, m) {
		obj, err := c.clone(ctx, s, m, x)
		if err != nil {
			return created, c.cloningFailed(s, x.failed, err)
		}
		if obj != nil {
			created = append(created, obj)
		}
	}
	return created, nil
}

func (c *Controller) cloningFailed(s *scope, reason string, err error) error {
	s.incomplete = true
	condition.Set(s.set, condition.False(clusterv1.MachinesCreatedV1Beta1Condition, clusterv1.ConditionSeverityError, reason, "%v", err))
	return err
}

// clone creates an object. It returns nil if the object already exists.
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
