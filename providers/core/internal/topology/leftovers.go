package topology

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// recheckInterval is when leftovers runs again while MachineSets or MachineDeployments are being deleted: no event reports
// when they are gone. Their templates are deleted with them, unless their MachineDeployment still referred to these then.
const recheckInterval = 10 * time.Second

// leftovers plans to delete templates that an earlier reconcile replaced but did not delete, because it was interrupted, or
// because a MachineSet was deleted before its MachineDeployment referred to other templates.
//
// It runs until none are left, and again after a reconcile that failed or changed an object: nothing else creates any.
func (c *Controller) leftovers(ctx context.Context, s *scope) (step.Result, error) {
	if _, clean := c.clean.Load(s.cluster.UID); clean {
		return step.Done(), nil
	}
	unused, recheck, err := c.Planner.unusedTemplates(ctx, s.cluster, s.plan)
	if err != nil {
		return step.Done(), err
	}
	s.recheck = s.recheck || recheck
	if len(unused) == 0 {
		return recheckLeftovers(s), nil
	}
	s.plan.Deletions = append(s.plan.Deletions, unused...)
	return c.waitIfOutdated(ctx, s)
}

// recheckLeftovers schedules the next reconcile if templates may be left over that cannot be deleted yet.
func recheckLeftovers(s *scope) step.Result {
	if s.recheck {
		return step.Again(recheckInterval)
	}
	return step.Done()
}

// recordLeftovers records whether the next reconcile has to look for leftovers.
func (c *Controller) recordLeftovers(s *scope, err error) {
	if err != nil || s.recheck || s.stale || len(s.done.updated) > 0 {
		c.clean.Delete(s.cluster.UID)
		return
	}
	c.clean.Store(s.cluster.UID, struct{}{})
}

// templateKey identifies a template of a Cluster, at any API version.
type templateKey struct {
	kind schema.GroupKind
	name string
}

func keyOf(ref *corev1.ObjectReference) templateKey {
	return templateKey{ref.GroupVersionKind().GroupKind(), ref.Name}
}

func keyOfObject(u *unstructured.Unstructured) templateKey {
	return templateKey{u.GroupVersionKind().GroupKind(), u.GetName()}
}

// unusedTemplates returns templates of the Cluster's topology that are neither part of the plan nor referenced. recheck
// reports that there are more, which only objects that are being deleted refer to.
func (p *Planner) unusedTemplates(ctx context.Context, cluster *clusterv1.Cluster, plan *Plan) (unused []*unstructured.Unstructured, recheck bool, err error) {
	users, err := readTemplateUsers(ctx, p.Reader, cluster, p.ListOptions(cluster))
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
			key := templateKey{kind.GroupKind(), template.GetName()}
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
func (p *Plan) templates() map[templateKey]bool {
	keys := maps.Clone(p.heldTemplates)
	if keys == nil {
		keys = map[templateKey]bool{}
	}
	for _, change := range p.Stages[0] {
		keys[keyOfObject(change.Desired)] = true
	}
	for _, u := range p.Deletions {
		keys[keyOfObject(u)] = true
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

// templateUsers are the templates that the workers of a Cluster refer to.
type templateUsers struct {
	// sets are referenced by MachineSets, deployments by MachineDeployments, and terminating by either of them while it is
	// being deleted.
	sets, deployments, terminating map[templateKey]bool
}

// any reports whether a template is referenced at all.
func (u templateUsers) any(key templateKey) bool {
	return u.sets[key] || u.deployments[key] || u.terminating[key]
}

// readTemplateUsers lists the Cluster's MachineSets, and the MachineDeployments that the options select.
func readTemplateUsers(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster, deploymentOptions []client.ListOption) (templateUsers, error) {
	users := templateUsers{sets: map[templateKey]bool{}, deployments: map[templateKey]bool{}, terminating: map[templateKey]bool{}}
	var deployments clusterv1.MachineDeploymentList
	if err := reader.List(ctx, &deployments, deploymentOptions...); err != nil {
		return templateUsers{}, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		users.add(users.deployments, &deployments.Items[i], &deployments.Items[i].Spec.Template.Spec)
	}
	var sets clusterv1.MachineSetList
	if err := reader.List(ctx, &sets, ownership.InCluster(cluster.Namespace, cluster.Name)); err != nil {
		return templateUsers{}, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		users.add(users.sets, &sets.Items[i], &sets.Items[i].Spec.Template.Spec)
	}
	return users, nil
}

// add adds the templates of a user to the given keys, or to terminating if the user is being deleted.
func (u templateUsers) add(keys map[templateKey]bool, user client.Object, machine *clusterv1.MachineSpec) {
	if !user.GetDeletionTimestamp().IsZero() {
		keys = u.terminating
	}
	for _, ref := range reference.OfMachine(machine) {
		keys[keyOf(ref)] = true
	}
}
