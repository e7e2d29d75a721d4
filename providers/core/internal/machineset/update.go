package machineset

import (
	"context"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// update writes what is desired of Machines that were moved here, as soon as the replicas of the set include them, in the order that
// package inplace documents. An interrupted update is continued.
func (c *Controller) update(ctx context.Context, s *scope) (step.Result, error) {
	if !c.inPlace {
		return step.Done(), nil
	}
	for i, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() || !inplace.IsMarked(m) || inplace.IsPending(m) {
			continue
		}
		updated, err := c.begin(ctx, s.set, m)
		if err != nil {
			s.report(fmt.Errorf("updating Machine %s in place: %w", m.Name, err))
		}
		if updated != nil {
			s.machines[i] = updated
		}
	}
	return step.Done(), nil
}

// begin writes what is desired of a Machine. All objects are read from the API server, and each write requires that they are unchanged: the
// cache may show a Machine whose update is already complete. It returns nil if there is nothing to do, or not yet.
func (c *Controller) begin(ctx context.Context, set *clusterv1.MachineSet, cached *clusterv1.Machine) (*clusterv1.Machine, error) {
	m := &clusterv1.Machine{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(cached), m); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if m.UID != cached.UID || !m.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(m, set) || !inplace.IsMarked(m) || inplace.IsPending(m) {
		return nil, nil
	}
	if inplace.IsMoved(m) {
		live := &clusterv1.MachineSet{}
		if err := c.Live.Get(ctx, client.ObjectKeyFromObject(set), live); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		if !inplace.IsAcknowledged(live, m) {
			return nil, nil
		}
		if err := c.Patch(ctx, m, func() { inplace.Acknowledge(m) }, step.IfUnchanged); err != nil {
			return nil, err
		}
	}
	template := &set.Spec.Template.Spec
	if err := c.updateObject(ctx, set, m, &template.InfrastructureRef, &m.Spec.InfrastructureRef, asIs); err != nil {
		return nil, err
	}
	if template.Bootstrap.ConfigRef.IsDefined() && m.Spec.Bootstrap.ConfigRef.IsDefined() {
		if err := c.updateObject(ctx, set, m, &template.Bootstrap.ConfigRef, &m.Spec.Bootstrap.ConfigRef, failsafe.Redacted); err != nil {
			return nil, err
		}
	}
	if err := c.Patch(ctx, m, func() {
		m.Spec.Version = template.Version
		if template.FailureDomain != "" {
			m.Spec.FailureDomain = template.FailureDomain
		}
		inplace.MarkPending(m)
	}, step.IfUnchanged); err != nil {
		return nil, err
	}
	step.Event(ctx, "SuccessfulStartInPlaceUpdate", "Machine %q is updated in place", m.Name)
	return m, nil
}

func asIs(err error) error { return err }

// updateObject writes an object of a Machine as its template demands. shown is what may be shown of a rejection: a bootstrap config may
// contain passwords.
func (c *Controller) updateObject(
	ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine, from, ref *clusterv1.ContractVersionedObjectReference,
	shown func(error) error,
) error {
	live := external.Reader{Client: c.Live, Versions: c.external.Versions}
	obj, err := live.Get(ctx, ref, m.Namespace)
	if err != nil {
		return err
	}
	template, err := c.external.Get(ctx, from, set.Namespace)
	if err != nil {
		return fmt.Errorf("reading its template: %w", err)
	}
	wanted, err := contract.Clone(contract.CloneInput{
		Template: template, Name: ref.Name, Namespace: m.Namespace, ClusterName: m.Spec.ClusterName,
		Labels: machineLabels(set), Annotations: set.Spec.Template.Annotations,
	})
	if err != nil {
		return err
	}
	if wanted.GroupVersionKind().GroupKind() != obj.GroupVersionKind().GroupKind() {
		return fmt.Errorf("its template is for a %s, but %s is a %s", wanted.GetKind(), obj.GetName(), obj.GetKind())
	}
	ours, err := c.ofTemplate(ctx, obj, from)
	if err != nil {
		return err
	}
	desired := inplace.Overlaid(obj, wanted, ours)
	annotations := desired.GetAnnotations()
	delete(annotations, conversion.OlderVersionAnnotation)
	if older, ok := wanted.GetAnnotations()[conversion.OlderVersionAnnotation]; ok {
		annotations[conversion.OlderVersionAnnotation] = older
	}
	desired.SetAnnotations(annotations)
	err = c.Patch(ctx, obj, func() {
		if spec, ok := desired.Object["spec"]; ok {
			obj.Object["spec"] = spec
		} else {
			delete(obj.Object, "spec")
		}
		obj.SetAnnotations(maps.Clone(desired.GetAnnotations()))
		inplace.Mark(obj)
	}, step.IfUnchanged)
	if err != nil {
		return fmt.Errorf("%s %s: %w", ref.Kind, ref.Name, shown(err))
	}
	return nil
}

// ofTemplate returns the fields that an object has from the template that it was created from, or last updated to; none if that no longer
// exists.
func (c *Controller) ofTemplate(
	ctx context.Context, obj *unstructured.Unstructured, like *clusterv1.ContractVersionedObjectReference,
) (*fieldpath.Set, error) {
	previous := *like
	previous.Name = obj.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
	if previous.Name == "" {
		return fieldpath.NewSet(), nil
	}
	template, err := c.external.Get(ctx, &previous, obj.GetNamespace())
	if err != nil {
		return fieldpath.NewSet(), client.IgnoreNotFound(err)
	}
	content, _, err := unstructured.NestedMap(template.Object, "spec", "template")
	if err != nil {
		return nil, err
	}
	return fieldpath.SetFromValue(value.NewValueInterface(content)), nil
}
