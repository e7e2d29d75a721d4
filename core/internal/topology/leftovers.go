package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// leaving is how soon leftovers looks again while MachineSets or MachineDeployments are on their way out, which no event
// tells the end of. They take their templates with them, unless their MachineDeployment still named these when it was
// asked.
const leaving = 10 * time.Second

// leftovers is the step that finds templates which were rotated away and not deleted, because the reconcile was
// interrupted, or because of a MachineSet that went before the MachineDeployment had other templates. It looks until
// nothing is left over, and again after a reconcile that failed or changed an object: in between nothing can be.
func (c *Controller) leftovers(ctx context.Context, s *scope) (step.Result, error) {
	if _, clean := c.clean.Load(s.cluster.UID); clean {
		return step.Done(), nil
	}
	found, wait, err := c.Planner.leftovers(ctx, s.cluster, s.plan)
	s.plan.Deletions = append(s.plan.Deletions, found...)
	if err != nil || !wait {
		return step.Done(), err
	}
	s.unclean = true
	return step.Again(leaving), nil
}

// remember takes note of how a reconcile ended.
func (c *Controller) remember(s *scope, err error) {
	if err != nil || s.unclean || len(s.done.updated) > 0 {
		c.clean.Delete(s.cluster.UID)
		return
	}
	c.clean.Store(s.cluster.UID, struct{}{})
}

type templateKey struct {
	kind schema.GroupKind
	name string
}

func keyOf(ref *corev1.ObjectReference) templateKey {
	return templateKey{ref.GroupVersionKind().GroupKind(), ref.Name}
}

// leftovers are templates of the Cluster's topology that the plan does not have and nothing refers to. wait says that
// something that is being deleted refers to others.
func (p *Planner) leftovers(ctx context.Context, cluster *clusterv1.Cluster, plan *Plan) (found []*unstructured.Unstructured, wait bool, err error) {
	used, going, err := p.usedTemplates(ctx, cluster)
	if err != nil {
		return nil, false, err
	}
	var kinds []schema.GroupVersionKind
	for _, change := range plan.Stages[0] {
		kind := change.Desired.GroupVersionKind()
		used[templateKey{kind.GroupKind(), change.Desired.GetName()}] = true
		if strings.HasSuffix(kind.Kind, clusterv1.TemplateSuffix) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, u := range plan.Deletions {
		used[templateKey{u.GroupVersionKind().GroupKind(), u.GetName()}] = true
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.External.Client.List(ctx, list, Labelled(cluster)...); err != nil {
			return nil, false, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			key := templateKey{kind.GroupKind(), u.GetName()}
			switch {
			case used[key] || !u.GetDeletionTimestamp().IsZero():
			case going[key]:
				wait = true
			default:
				found = append(found, u)
			}
		}
	}
	return found, wait, nil
}

// usedTemplates are those that MachineSets of the Cluster refer to, and those that MachineDeployments and MachineSets
// refer to which are being deleted. MachineDeployments that stay refer to those of the plan.
func (p *Planner) usedTemplates(ctx context.Context, cluster *clusterv1.Cluster) (used, going map[templateKey]bool, err error) {
	used, going = map[templateKey]bool{}, map[templateKey]bool{}
	add := func(to map[templateKey]bool, machine *clusterv1.MachineSpec) {
		to[keyOf(&machine.InfrastructureRef)] = true
		if machine.Bootstrap.ConfigRef != nil {
			to[keyOf(machine.Bootstrap.ConfigRef)] = true
		}
	}
	var deployments clusterv1.MachineDeploymentList
	if err := p.Reader.List(ctx, &deployments, p.Of(cluster)...); err != nil {
		return nil, nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		if !deployments.Items[i].DeletionTimestamp.IsZero() {
			add(going, &deployments.Items[i].Spec.Template.Spec)
		}
	}
	var sets clusterv1.MachineSetList
	inCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	if err := p.Reader.List(ctx, &sets, client.InNamespace(cluster.Namespace), inCluster); err != nil {
		return nil, nil, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		to := used
		if !sets.Items[i].DeletionTimestamp.IsZero() {
			to = going
		}
		add(to, &sets.Items[i].Spec.Template.Spec)
	}
	return used, going, nil
}
