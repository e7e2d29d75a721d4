package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/step"
)

// leftovers is the step that finds templates which an interrupted reconcile rotated away and did not delete. It looks
// once per Cluster and process, and again after an error: in between nothing can be left over.
func (c *Controller) leftovers(ctx context.Context, s *scope) (step.Result, error) {
	if _, clean := c.clean.Load(s.cluster.UID); clean {
		return step.Done(), nil
	}
	found, err := c.Planner.leftovers(ctx, s.cluster, s.plan)
	s.plan.Deletions = append(s.plan.Deletions, found...)
	return step.Done(), err
}

// remember takes note of how a reconcile ended.
func (c *Controller) remember(cluster *clusterv1.Cluster, err error) {
	if err != nil || !cluster.DeletionTimestamp.IsZero() {
		c.clean.Delete(cluster.UID)
		return
	}
	c.clean.Store(cluster.UID, struct{}{})
}

type templateKey struct {
	kind schema.GroupKind
	name string
}

func keyOf(ref *corev1.ObjectReference) templateKey {
	return templateKey{ref.GroupVersionKind().GroupKind(), ref.Name}
}

// leftovers are templates of the Cluster's topology that the plan does not have and nothing refers to.
func (p *Planner) leftovers(ctx context.Context, cluster *clusterv1.Cluster, plan *Plan) ([]*unstructured.Unstructured, error) {
	used, err := p.usedTemplates(ctx, cluster)
	if err != nil {
		return nil, err
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
	var found []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.External.Client.List(ctx, list, Labelled(cluster)...); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			u := &list.Items[i]
			if u.GetDeletionTimestamp().IsZero() && !used[templateKey{kind.GroupKind(), u.GetName()}] {
				found = append(found, u)
			}
		}
	}
	return found, nil
}

// usedTemplates are those that MachineDeployments and MachineSets of the Cluster refer to, also those that are being
// deleted: they take their templates with them.
func (p *Planner) usedTemplates(ctx context.Context, cluster *clusterv1.Cluster) (map[templateKey]bool, error) {
	used := map[templateKey]bool{}
	add := func(machine *clusterv1.MachineSpec) {
		used[keyOf(&machine.InfrastructureRef)] = true
		if machine.Bootstrap.ConfigRef != nil {
			used[keyOf(machine.Bootstrap.ConfigRef)] = true
		}
	}
	var deployments clusterv1.MachineDeploymentList
	if err := p.Reader.List(ctx, &deployments, p.Of(cluster)...); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		if !deployments.Items[i].DeletionTimestamp.IsZero() {
			add(&deployments.Items[i].Spec.Template.Spec)
		}
	}
	var sets clusterv1.MachineSetList
	inCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	if err := p.Reader.List(ctx, &sets, client.InNamespace(cluster.Namespace), inCluster); err != nil {
		return nil, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		add(&sets.Items[i].Spec.Template.Spec)
	}
	return used, nil
}
