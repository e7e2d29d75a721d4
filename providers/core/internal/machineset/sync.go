package machineset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// fieldManager is the field manager of the Machines that this controller applies.
const fieldManager = "capi-machineset"

// sync updates labels, annotations and timeouts of the Machines from the template in place, and labels and annotations of the
// objects that they refer to. It keeps those of other clients. The objects come first: if one of them cannot be updated, the
// Machine still differs, and the next reconcile retries.
func (c *Controller) sync(ctx context.Context, s *scope) (step.Result, error) {
	for i, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		updated, err := c.syncMachine(ctx, s.set, m)
		s.report(err)
		s.machines[i] = updated
	}
	return step.Done(), nil
}

func (c *Controller) syncMachine(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine) (*clusterv1.Machine, error) {
	desired := inPlace(set, m)
	diff, err := c.difference(ctx, m, desired)
	if err != nil {
		return m, fmt.Errorf("comparing Machine %s: %w", m.Name, err)
	}
	if !diff.Changed() {
		return m, nil
	}
	removed := removedMetadata{
		labels:      removedKeys(m.Labels, desired.Labels, diff, "labels"),
		annotations: removedKeys(m.Annotations, desired.Annotations, diff, "annotations"),
	}
	if err := c.syncObjects(ctx, set, m, removed); err != nil {
		return m, err
	}
	updated, err := c.apply(ctx, m, desired)
	if err != nil {
		return m, fmt.Errorf("updating Machine %s in place: %w", m.Name, err)
	}
	return updated, nil
}

// removedMetadata holds the keys that were removed from the template.
type removedMetadata struct{ labels, annotations []string }

// removedKeys returns the keys that applying desired removes.
func removedKeys(live, desired map[string]string, diff ssa.Diff, field string) []string {
	var out []string
	for key := range live {
		if _, kept := desired[key]; !kept && slices.Contains(diff.Metadata, ".metadata."+field+"."+key) {
			out = append(out, key)
		}
	}
	return out
}

// inPlace returns the desired state of an existing Machine: fields that can change in place come from the template, the others
// from the Machine.
func inPlace(set *clusterv1.MachineSet, m *clusterv1.Machine) *clusterv1.Machine {
	desired := newMachine(set, m.Name, generationOf(m))
	desired.UID = m.UID
	if !slices.Contains(m.Finalizers, clusterv1.MachineFinalizer) {
		desired.Finalizers = nil // otherwise keep it: server-side apply would remove it, and the Machine controller add it again
	}
	if m.Spec.MinReadySeconds != nil { // v1.14 sets it.
		desired.Spec.MinReadySeconds = set.Spec.Template.Spec.MinReadySeconds
	}
	desired.Spec.Version = m.Spec.Version
	desired.Spec.InfrastructureRef = m.Spec.InfrastructureRef
	desired.Spec.Bootstrap.ConfigRef = m.Spec.Bootstrap.ConfigRef
	desired.Spec.ProviderID = ""
	desired.Spec.FailureDomain = m.Spec.FailureDomain
	return desired
}

// apply applies the desired state of a Machine if it differs, and returns the Machine as it is then. Live is nil for a new one.
func (c *Controller) apply(ctx context.Context, live, desired *clusterv1.Machine) (*clusterv1.Machine, error) {
	current, configuration, err := ssa.Typed(live, desired, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if err != nil {
		return live, err
	}
	result, changed, err := c.applier.Apply(ctx, current, configuration, references())
	if err != nil || !changed {
		return live, err
	}
	m := &clusterv1.Machine{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object, m)
}

// references keeps what references of Machines have in v1beta1, and not in ours.
func references() ssa.Option {
	return ssa.KeepReferences([]string{"spec", "infrastructureRef"}, []string{"spec", "bootstrap", "configRef"})
}

// difference returns what apply would change.
func (c *Controller) difference(ctx context.Context, live, desired *clusterv1.Machine) (ssa.Diff, error) {
	current, configuration, err := ssa.Typed(live, desired, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if err != nil {
		return ssa.Diff{}, err
	}
	return c.applier.Plan(ctx, current, configuration, references())
}

// syncObjects updates labels and annotations of the objects that a Machine refers to.
func (c *Controller) syncObjects(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine, removed removedMetadata) error {
	for _, ref := range reference.OfMachine(&m.Spec) {
		obj, err := c.external.Get(ctx, ref, m.Namespace)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			continue // the complete step creates it with these labels and annotations
		}
		err = c.Patch(ctx, obj, func() {
			obj.SetLabels(overlay(obj.GetLabels(), machineLabels(set), removed.labels))
			obj.SetAnnotations(overlay(obj.GetAnnotations(), set.Spec.Template.Annotations, removed.annotations))
		})
		if err != nil {
			return fmt.Errorf("updating %s %s in place: %w", ref.Kind, ref.Name, err)
		}
	}
	return nil
}

// overlay returns base without the removed keys and with all of over.
func overlay(base, over map[string]string, removed []string) map[string]string {
	if len(over) == 0 && len(removed) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	for _, key := range removed {
		delete(out, key)
	}
	maps.Copy(out, over)
	return out
}
