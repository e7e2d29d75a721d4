package machinepool

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/ssa"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// listMachines lists the infrastructure machines and the Machines of the pool, and watches the kind of the former. It ends the
// work on Machines if the provider has no infrastructure machines.
func (c *Controller) listMachines(ctx context.Context, s *scope) (step.Result, error) {
	if s.infra == nil {
		return step.Stop(), nil
	}
	kind, err := s.infra.MachineKind()
	if err != nil || kind == "" {
		return step.Stop(), err
	}
	s.machineKind, err = c.follow.Reader.Versions.Newest(ctx, schema.GroupKind{Group: s.infra.GroupVersionKind().Group, Kind: kind})
	if err != nil {
		return step.Stop(), fmt.Errorf("status.infrastructureMachineKind of %s %s: %w", s.infra.GetKind(), s.infra.GetName(), err)
	}
	err = c.machineKinds.Watch(ctx, s.machineKind, handler.EnqueueRequestsFromMapFunc(c.ofInfraMachine), infraMachineChanges())
	if err != nil {
		return step.Stop(), err
	}
	if s.infraMachines, err = c.infraMachines(ctx, c.Client, s); err != nil {
		return step.Stop(), err
	}
	s.machines, err = machines(ctx, c.Client, s.pool)
	return step.Done(), err
}

// infraMachines lists the infrastructure machines of the pool, sorted by name.
func (c *Controller) infraMachines(ctx context.Context, from client.Reader, s *scope) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(s.machineKind.GroupVersion().WithKind(s.machineKind.Kind + "List"))
	if err := from.List(ctx, list, labeled(s.pool)...); err != nil {
		return nil, fmt.Errorf("listing the objects of kind %s of MachinePool %s: %w", s.machineKind.Kind, s.pool.Name, err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

// machines lists the Machines of a pool, sorted by name: those that it controls, and orphans with its label.
func machines(ctx context.Context, from client.Reader, p *clusterv1.MachinePool) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := from.List(ctx, list, labeled(p)...); err != nil {
		return nil, fmt.Errorf("listing the Machines of MachinePool %s: %w", p.Name, err)
	}
	var out []*clusterv1.Machine
	for i := range list.Items {
		m := &list.Items[i]
		if owner := metav1.GetControllerOf(m); owner == nil || owner.UID == p.UID {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// labeled selects the objects with the label of a pool.
func labeled(p *clusterv1.MachinePool) []client.ListOption {
	return []client.ListOption{
		client.MatchingLabels{clusterv1.MachinePoolNameLabel: naming.LabelValue(p.Name)},
		ownership.InCluster(p.Namespace, p.Spec.ClusterName),
	}
}

// byInfraMachine returns the Machines of the pool by the name of their infrastructure machine.
func (s *scope) byInfraMachine() map[string]*clusterv1.Machine {
	out := map[string]*clusterv1.Machine{}
	for _, m := range s.machines {
		if ref := m.Spec.InfrastructureRef; ref.GroupVersionKind().GroupKind() == s.machineKind.GroupKind() {
			out[ref.Name] = m
		}
	}
	return out
}

// syncMachines updates labels, annotations and timeouts of the Machines from the template in place, and makes the pool the
// controller of those that lost their owner reference. It keeps what other clients set.
func (c *Controller) syncMachines(ctx context.Context, s *scope) (step.Result, error) {
	existing := s.byInfraMachine()
	for _, infra := range s.infraMachines {
		m := existing[infra.GetName()]
		if m == nil || !m.DeletionTimestamp.IsZero() {
			continue
		}
		if _, err := c.apply(ctx, m, c.inPlace(s, m)); err != nil {
			s.report(fmt.Errorf("updating Machine %s in place: %w", m.Name, err))
		}
	}
	return step.Done(), nil
}

// newMachine returns the Machine of an infrastructure machine. It has no bootstrap data: the infrastructure provider uses that of the
// pool. The infrastructure reports provider ID and failure domain.
func newMachine(s *scope, infra *unstructured.Unstructured) *clusterv1.Machine {
	template := s.pool.Spec.Template.DeepCopy()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.pool.Namespace, Name: infra.GetName(),
			Labels: template.Labels, Annotations: template.Annotations,
			Finalizers: []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{
				ownership.Reference(s.pool, clusterv1.GroupVersion.WithKind(clusterv1.MachinePoolKind), true),
			},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: s.pool.Spec.ClusterName, Version: template.Spec.Version,
			NodeDrainTimeout: template.Spec.NodeDrainTimeout, NodeVolumeDetachTimeout: template.Spec.NodeVolumeDetachTimeout,
			NodeDeletionTimeout: template.Spec.NodeDeletionTimeout,
		},
	}
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[clusterv1.ClusterNameLabel] = s.pool.Spec.ClusterName
	m.Labels[clusterv1.MachinePoolNameLabel] = naming.LabelValue(s.pool.Name)
	ref := &m.Spec.InfrastructureRef
	ref.APIVersion, ref.Kind = s.machineKind.ToAPIVersionAndKind()
	ref.Namespace, ref.Name = s.pool.Namespace, infra.GetName()
	return m
}

// inPlace returns the desired state of an existing Machine: metadata and timeouts come from the template, the rest from the Machine.
func (c *Controller) inPlace(s *scope, m *clusterv1.Machine) *clusterv1.Machine {
	infra := &unstructured.Unstructured{}
	infra.SetName(m.Name)
	out := newMachine(s, infra)
	out.UID = m.UID
	if !slices.Contains(m.Finalizers, clusterv1.MachineFinalizer) {
		out.Finalizers = nil // the Machine controller adds it
	}
	out.Spec.Version, out.Spec.InfrastructureRef = m.Spec.Version, m.Spec.InfrastructureRef
	return out
}

// apply applies the desired state of a Machine if it differs, and returns the Machine as it is then. live is nil for a new one.
func (c *Controller) apply(ctx context.Context, live, want *clusterv1.Machine) (*clusterv1.Machine, error) {
	current, configuration, err := ssa.Typed(live, want, clusterv1.GroupVersion.WithKind(clusterv1.MachineKind))
	if err != nil {
		return live, err
	}
	result, changed, err := c.applier.Apply(ctx, current, configuration)
	if err != nil || !changed {
		return live, err
	}
	m := &clusterv1.Machine{}
	return m, runtime.DefaultUnstructuredConverter.FromUnstructured(result.Object, m)
}
