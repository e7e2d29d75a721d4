package templates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Cleaner deletes templates that are no longer in use. It reads the objects that use them from the API server: the cache may not
// have a MachineSet that was just created, which needs its template, or may still have a MachineSet that was deleted, because of
// which the template would be kept forever.
type Cleaner struct {
	step.Clients
	// External reads templates from the cache, and LiveExternal from the API server.
	External, LiveExternal external.Reader
}

// MachineDeployment deletes the templates of a MachineDeployment that is being deleted, then removes the finalizer.
func (c Cleaner) MachineDeployment(ctx context.Context, md *clusterv1.MachineDeployment) (step.Result, error) {
	return c.clean(ctx, md, clusterv1.MachineDeploymentTopologyFinalizer, md, &md.Spec.Template.Spec)
}

// MachineSet deletes the templates of a MachineSet that is being deleted, then removes the finalizer.
func (c Cleaner) MachineSet(ctx context.Context, ms *clusterv1.MachineSet) (step.Result, error) {
	md := &clusterv1.MachineDeployment{}
	md.Namespace = ms.Namespace
	md.Name = ms.Labels[clusterv1.MachineDeploymentNameLabel]
	if owner := metav1.GetControllerOf(ms); owner != nil && owner.Kind == "MachineDeployment" {
		md.Name = owner.Name
	}
	if !ms.DeletionTimestamp.IsZero() && md.Name != "" {
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(md), md); client.IgnoreNotFound(err) != nil {
			return step.Done(), fmt.Errorf("reading MachineDeployment %s: %w", md.Name, err)
		}
	}
	return c.clean(ctx, ms, clusterv1.MachineSetTopologyFinalizer, md, &ms.Spec.Template.Spec)
}

// clean adds the finalizer to obj, or deletes the templates of its Machines, whose spec is machine; md is its MachineDeployment.
func (c Cleaner) clean(
	ctx context.Context, obj client.Object, finalizer string, md *clusterv1.MachineDeployment, machine *clusterv1.MachineSpec,
) (step.Result, error) {
	if obj.GetDeletionTimestamp().IsZero() {
		controllerutil.AddFinalizer(obj, finalizer)
		return step.Done(), nil
	}
	if !controllerutil.ContainsFinalizer(obj, finalizer) {
		return step.Stop(), nil
	}
	inUse, err := c.inUse(ctx, md)
	if err != nil {
		return step.Done(), err
	}
	var errs []error
	for _, ref := range templates(machine) {
		if !inUse[ref] {
			errs = append(errs, c.delete(ctx, obj.GetNamespace(), ref))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return step.Done(), err
	}
	controllerutil.RemoveFinalizer(obj, finalizer)
	return step.Done(), nil
}

// inUse returns the templates of the MachineDeployment and its MachineSets, except those that are being deleted.
func (c Cleaner) inUse(ctx context.Context, md *clusterv1.MachineDeployment) (map[reference]bool, error) {
	used := map[reference]bool{}
	add := func(obj client.Object, machine *clusterv1.MachineSpec) {
		if obj.GetDeletionTimestamp().IsZero() {
			for _, ref := range templates(machine) {
				used[ref] = true
			}
		}
	}
	add(md, &md.Spec.Template.Spec)
	if md.Name == "" {
		return used, nil
	}
	var sets clusterv1.MachineSetList
	if err := c.Live.List(ctx, &sets, client.InNamespace(md.Namespace),
		client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: md.Name}); err != nil {
		return nil, fmt.Errorf("listing the MachineSets of MachineDeployment %s: %w", md.Name, err)
	}
	for i := range sets.Items {
		add(&sets.Items[i], &sets.Items[i].Spec.Template.Spec)
	}
	return used, nil
}

// reference is a reference to a template.
type reference = clusterv1.ContractVersionedObjectReference

func templates(machine *clusterv1.MachineSpec) []reference {
	refs := []reference{machine.Bootstrap.ConfigRef, machine.InfrastructureRef}
	return slices.DeleteFunc(refs, func(ref reference) bool { return !ref.IsDefined() })
}

// delete deletes a template of a topology. Templates without the topology label belong to users and are kept.
func (c Cleaner) delete(ctx context.Context, namespace string, ref reference) error {
	obj, err := c.External.Get(ctx, &ref, namespace)
	if apierrors.IsNotFound(err) {
		obj, err = c.LiveExternal.Get(ctx, &ref, namespace)
	}
	if err != nil {
		_, err = contract.KindGone(ctx, c.Live, client.IgnoreNotFound(err))
		return err
	}
	if _, ours := obj.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]; !ours || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	if err := c.DeleteAny(ctx, obj); err != nil {
		return fmt.Errorf("deleting %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return nil
}
