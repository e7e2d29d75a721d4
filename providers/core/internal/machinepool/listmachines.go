package machinepool

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// listMachines lists the infrastructure machines, whose kind it watches, and the Machines of the pool. It ends the
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
