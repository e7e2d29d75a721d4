package topologyplan

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machinedeployment"
)

// rollouts adds the rollouts that the changes of a round start, the control plane's first.
func (p *prediction) rollouts(ctx context.Context, round *Round) error {
	cluster := &clusterv1.Cluster{}
	if err := p.Get(ctx, *p.plan.Cluster, cluster); err != nil {
		return err
	}
	var controlPlane, workers []Rollout
	for _, change := range round.Changes {
		if change.Action != Modified {
			continue
		}
		u := change.After
		var r *Rollout
		var err error
		isControlPlane := cluster.Spec.ControlPlaneRef.IsDefined() && u.GetKind() == cluster.Spec.ControlPlaneRef.Kind &&
			u.GetName() == cluster.Spec.ControlPlaneRef.Name
		switch {
		case isControlPlane:
			if r, err = p.controlPlaneRollout(ctx, change); r != nil {
				controlPlane = append(controlPlane, *r)
			}
		case u.GroupVersionKind() == clusterv1.GroupVersion.WithKind("MachineDeployment"):
			if r, err = p.deploymentRollout(ctx, change); r != nil {
				workers = append(workers, *r)
			}
		}
		if err != nil {
			return fmt.Errorf("predicting the rollout of %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	pools, err := p.poolRollouts(ctx, round.Changes)
	if err != nil {
		return err
	}
	workers = append(workers, pools...)
	slices.SortFunc(workers, func(a, b Rollout) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	round.Rollouts = append(controlPlane, workers...)
	return nil
}

// machines returns the Machines of the Cluster with labels, without those that are being deleted.
func (p *prediction) machines(ctx context.Context, with client.ListOption) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineList{}
	if err := p.List(ctx, list, client.InNamespace(p.Namespace), inCluster(p.plan.Cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	var o client.ListOptions
	with.ApplyToList(&o)
	var found []*clusterv1.Machine
	for i := range list.Items {
		m := &list.Items[i]
		if m.DeletionTimestamp.IsZero() && o.LabelSelector.Matches(labelSet(m)) {
			found = append(found, m)
		}
	}
	return found, nil
}

// controlPlaneRollout returns nil if the change replaces no Machines.
func (p *prediction) controlPlaneRollout(ctx context.Context, change Change) (*Rollout, error) {
	u := change.After
	machines, err := p.machines(ctx, client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return nil, err
	}
	r := &Rollout{Kind: u.GetKind(), Name: u.GetName(), Held: pausedObject(u.GetAnnotations())}
	outdated := p.ControlPlanes[u.GroupVersionKind().GroupKind()]
	if outdated == nil {
		r.Unknown, r.Kept, r.Reasons = true, len(machines), change.Fields
		return r, nil
	}
	for _, m := range machines {
		if p.replaced[m.Name] {
			continue
		}
		reasons, err := outdated(ctx, p.World, u, m, p.Now)
		if err != nil {
			return nil, err
		}
		p.count(r, m, reasons)
	}
	return r.ifAny(), nil
}

// deploymentRollout returns nil if the change replaces no Machines.
func (p *prediction) deploymentRollout(ctx context.Context, change Change) (*Rollout, error) {
	before, md := &clusterv1.MachineDeployment{}, &clusterv1.MachineDeployment{}
	if err := into(change.Before, before); err != nil {
		return nil, err
	}
	if err := into(change.After, md); err != nil {
		return nil, err
	}
	list := &clusterv1.MachineSetList{}
	if err := p.List(ctx, list, client.InNamespace(p.Namespace), inCluster(p.plan.Cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing MachineSets: %w", err)
	}
	var sets []*clusterv1.MachineSet
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], md) {
			sets = append(sets, &list.Items[i])
		}
	}
	current := machinedeployment.Current(md, sets, p.Now)
	machines, err := p.machines(ctx, client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: md.Name})
	if err != nil {
		return nil, err
	}
	reasons := templateFields(change.Fields)
	if len(reasons) == 0 {
		reasons = change.Fields // such as spec.rollout.after
	}
	r := &Rollout{Kind: "MachineDeployment", Name: md.Name, Held: heldDeployment(md)}
	for _, m := range machines {
		if p.replaced[m.Name] {
			continue
		}
		if current != nil && metav1.IsControlledBy(m, current) {
			r.Kept++
			continue
		}
		p.count(r, m, reasons)
	}
	return r.ifAny(), nil
}

// templateSpec is the path of the spec of Machines in MachineDeployments and MachinePools.
const templateSpec = "spec.template.spec."

// templateFields returns those of the fields that are in the template of Machines, or one of others. One field of the template replaces no
// Machines.
func templateFields(fields []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(fields), func(f string) bool {
		return f == templateSpec+"minReadySeconds" || !strings.HasPrefix(f, templateSpec) && !slices.Contains(others, f)
	})
}

// count adds a Machine to a rollout, which replaces it if there are reasons.
func (p *prediction) count(r *Rollout, m *clusterv1.Machine, reasons []string) {
	if len(reasons) == 0 {
		r.Kept++
		return
	}
	p.replaced[m.Name] = true
	r.Machines = append(r.Machines, m.Name)
	slices.Sort(r.Machines)
	r.Reasons = append(r.Reasons, reasons...)
	slices.Sort(r.Reasons)
	r.Reasons = slices.Compact(r.Reasons)
}

func (r *Rollout) ifAny() *Rollout {
	if len(r.Machines) == 0 {
		return nil
	}
	return r
}
