package machineset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// fieldManager owns what a MachineSet applies to its Machines.
const fieldManager = "capi-machineset"

// sync brings labels, annotations and timeouts of the template to the Machines in place, and labels and
// annotations to the objects they refer to. What somebody else added stays.
func (c *Controller) sync(ctx context.Context, s *scope) (step.Result, error) {
	for i, m := range s.machines {
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		applied, changed, err := c.apply(ctx, m, inPlace(s.set, m))
		if err != nil {
			return step.Done(), fmt.Errorf("updating Machine %s in place: %w", m.Name, err)
		}
		if !changed {
			continue
		}
		s.machines[i] = applied
		if err := c.syncObjects(ctx, s.set, applied, gone(m.Labels, applied.Labels), gone(m.Annotations, applied.Annotations)); err != nil {
			return step.Done(), err
		}
	}
	return step.Done(), nil
}

// inPlace is what the set wants of a Machine that exists: what can change without replacing it comes from
// the template, the rest is what the Machine was made with.
func inPlace(set *clusterv1.MachineSet, m *clusterv1.Machine) *clusterv1.Machine {
	desired := newMachine(set, m.Name)
	desired.UID = m.UID
	if !slices.Contains(m.Finalizers, clusterv1.MachineFinalizer) {
		desired.Finalizers = nil // what was applied once and is not any more goes away; the Machine controller puts it back
	}
	desired.Spec.Version = m.Spec.Version
	desired.Spec.InfrastructureRef = m.Spec.InfrastructureRef
	desired.Spec.Bootstrap.ConfigRef = m.Spec.Bootstrap.ConfigRef
	desired.Spec.ProviderID = nil
	desired.Spec.FailureDomain = m.Spec.FailureDomain
	return desired
}

// apply makes a Machine what desired says, if it is not. Live is nil for a new one.
func (c *Controller) apply(ctx context.Context, live, desired *clusterv1.Machine) (*clusterv1.Machine, bool, error) {
	configuration, err := toUnstructured(desired)
	if err != nil {
		return nil, false, err
	}
	unstructured.RemoveNestedField(configuration.Object, "status")
	var current *unstructured.Unstructured
	if live != nil {
		if current, err = toUnstructured(live); err != nil {
			return nil, false, err
		}
	}
	result, changed, err := c.applier.Apply(ctx, current, configuration)
	if err != nil || !changed {
		return live, false, err
	}
	m := &clusterv1.Machine{}
	return m, true, runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object, m)
}

func toUnstructured(m *clusterv1.Machine) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if m.CreationTimestamp.IsZero() {
		unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	}
	return u, nil
}

// syncObjects brings labels and annotations to the objects that a Machine refers to.
func (c *Controller) syncObjects(ctx context.Context, set *clusterv1.MachineSet, m *clusterv1.Machine, labels, annotations []string) error {
	for _, ref := range references(m) {
		obj, err := c.external.Get(ctx, ref, m.Namespace)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err != nil {
			continue // it is made later, with everything on it
		}
		before := obj.DeepCopy()
		obj.SetLabels(overlay(obj.GetLabels(), machineLabels(set), labels))
		obj.SetAnnotations(overlay(obj.GetAnnotations(), set.Spec.Template.Annotations, annotations))
		if equality.Semantic.DeepEqual(before, obj) {
			continue
		}
		if err := c.Client.Patch(ctx, obj, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("updating %s %s in place: %w", ref.Kind, ref.Name, err)
		}
	}
	return nil
}

func references(m *clusterv1.Machine) []*corev1.ObjectReference {
	refs := []*corev1.ObjectReference{&m.Spec.InfrastructureRef}
	if m.Spec.Bootstrap.ConfigRef != nil {
		refs = append(refs, m.Spec.Bootstrap.ConfigRef)
	}
	return refs
}

// overlay is base without the removed keys and with everything of over.
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

func gone(before, after map[string]string) []string {
	var out []string
	for key := range before {
		if _, ok := after[key]; !ok {
			out = append(out, key)
		}
	}
	return out
}
