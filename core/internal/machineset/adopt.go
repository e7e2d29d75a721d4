package machineset

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/reference"
	"sigs.k8s.io/cluster-api/internal/ownership"
	"sigs.k8s.io/cluster-api/internal/step"
)

// adopt gives the MachineSet its label, and the Cluster as owner if no MachineDeployment manages it; its
// templates belong to the Cluster, and are named with the version that their provider speaks now.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	set := s.set
	if set.Labels == nil {
		set.Labels = map[string]string{}
	}
	set.Labels[clusterv1.ClusterNameLabel] = set.Spec.ClusterName
	owner := ownership.Reference(s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind), false)
	if metav1.GetControllerOf(set) == nil {
		set.OwnerReferences, _ = ownership.Ensure(set.OwnerReferences, owner)
	}
	for _, ref := range templateRefs(set) {
		if _, err := c.external.Versions.Refresh(ctx, ref); err != nil {
			return step.Done(), err
		}
		// Cloning reports a template that is missing, if it is needed.
		if _, err := reference.Share(ctx, c.Client, c.external, ref, set.Namespace, owner); err != nil {
			return step.Done(), err
		}
	}
	return step.Done(), nil
}

// templateRefs are the templates that Machines are made from.
func templateRefs(set *clusterv1.MachineSet) []*corev1.ObjectReference {
	refs := []*corev1.ObjectReference{&set.Spec.Template.Spec.InfrastructureRef}
	if set.Spec.Template.Spec.Bootstrap.ConfigRef != nil {
		refs = append(refs, set.Spec.Template.Spec.Bootstrap.ConfigRef)
	}
	return refs
}

// collect finds the Machines of the set and adopts orphans that its selector matches. Machines that are
// being deleted are not adopted.
func (c *Controller) collect(ctx context.Context, s *scope) (step.Result, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s.set.Spec.Selector)
	if err != nil {
		return step.Done(), step.Terminal(fmt.Errorf("spec.selector of MachineSet %s: %w", s.set.Name, err))
	}
	list := &clusterv1.MachineList{}
	if err := c.Client.List(ctx, list, client.InNamespace(s.set.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return step.Done(), fmt.Errorf("listing Machines: %w", err)
	}
	for i := range list.Items {
		m := &list.Items[i]
		switch owner := metav1.GetControllerOf(m); {
		case owner != nil && owner.UID != s.set.UID:
			continue
		case owner == nil && !m.DeletionTimestamp.IsZero():
			continue
		case owner == nil:
			if err := c.adoptMachine(ctx, s.set, m); err != nil {
				return step.Done(), err
			}
		}
		s.machines = append(s.machines, m)
	}
	slices.SortFunc(s.machines, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	s.known = true
	return step.Done(), nil
}

func (c *Controller) adoptMachine(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine) error {
	before := m.DeepCopy()
	if _, err := ownership.EnsureController(m, ownership.Reference(set, clusterv1.GroupVersion.WithKind(machineSetKind), true)); err != nil {
		return err
	}
	if err := c.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		step.Warning(ctx, "FailedAdopt", "Failed to adopt Machine %q: %v", m.Name, err)
		return fmt.Errorf("adopting Machine %s: %w", m.Name, err)
	}
	step.Event(ctx, "SuccessfulAdopt", "Adopted Machine %q", m.Name)
	return nil
}

func labelsOf(m *clusterv1.Machine) labels.Set { return labels.Set(m.Labels) }
