package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/reference"
)

// UnusedTemplates returns templates of the Cluster's topology that are neither part of the plan nor referenced. recheck
// reports that there are more, which only objects that are being deleted refer to.
func (p *Planner) UnusedTemplates(
	ctx context.Context, cluster *clusterv1.Cluster, plan *Plan,
) (unused []*unstructured.Unstructured, recheck bool, err error) {
	users, err := ReadTemplateUsers(ctx, p.Reader, cluster)
	if err != nil {
		return nil, false, err
	}
	planned := plan.templates()
	for _, kind := range plan.templateKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := p.External.Client.List(ctx, list, Labeled(cluster)...); err != nil {
			return nil, false, fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			template := &list.Items[i]
			key := identity{kind.GroupKind(), template.GetName()}
			switch {
			case planned[key] || users.sets[key] || !template.GetDeletionTimestamp().IsZero():
			case users.terminating[key]:
				recheck = true
			default:
				unused = append(unused, template)
			}
		}
	}
	return unused, recheck, nil
}

// templates returns the templates that the plan applies, deletes or leaves to objects on hold.
func (p *Plan) templates() map[identity]bool {
	keys := maps.Clone(p.heldTemplates)
	if keys == nil {
		keys = map[identity]bool{}
	}
	for _, change := range p.Stages[0] {
		keys[identityOfObject(change.Desired)] = true
	}
	for _, u := range p.Deletions {
		keys[identityOfObject(u)] = true
	}
	return keys
}

// templateKinds returns the kinds of the templates that the plan applies.
func (p *Plan) templateKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, change := range p.Stages[0] {
		kind := change.Desired.GroupVersionKind()
		if strings.HasSuffix(kind.Kind, clusterv1.TemplateSuffix) && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// heldTemplates returns the templates that objects on hold refer to.
func (c *comparison) heldTemplates() (map[identity]bool, error) {
	held := map[identity]bool{}
	if c.want.ControlPlaneOnHold && c.current.ControlPlane != nil {
		ref, err := c.current.Fields().InfrastructureRef()
		if err != nil {
			return nil, err
		}
		if ref != nil {
			held[identityOfVersioned(ref)] = true
		}
	}
	for _, w := range c.want.Workers {
		if current := c.current.Workers[w.ID()].Deployment; w.OnHold && current != nil {
			for _, ref := range reference.OfMachine(&current.Spec.Template.Spec) {
				held[identityOf(ref)] = true
			}
		}
	}
	return held, nil
}
