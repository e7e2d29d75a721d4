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
	"sigs.k8s.io/cluster-api/provider/step"
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
	if err != nil {
		return step.Done(), err
	}
	if wait {
		s.unclean = true
	}
	if len(found) == 0 {
		return again(s), nil
	}
	s.plan.Deletions = append(s.plan.Deletions, found...)
	return c.confirmed(ctx, s)
}

// again is when to look for leftovers again.
func again(s *scope) step.Result {
	if s.unclean {
		return step.Again(leaving)
	}
	return step.Done()
}

// remember takes note of how a reconcile ended.
func (c *Controller) remember(s *scope, err error) {
	if err != nil || s.unclean || s.stale || len(s.done.updated) > 0 {
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
	users, err := readUsers(ctx, p.Reader, cluster, p.Of(cluster))
	if err != nil {
		return nil, false, err
	}
	used, going := users.sets, users.going
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

// users are the templates that workers of a Cluster refer to.
type users struct {
	// sets and deployments are those of MachineSets and MachineDeployments that stay, going those of both that are being
	// deleted.
	sets, deployments, going map[templateKey]bool
}

// readUsers reads them; of selects the MachineDeployments of the topology.
func readUsers(ctx context.Context, reader client.Reader, cluster *clusterv1.Cluster, of []client.ListOption) (users, error) {
	u := users{sets: map[templateKey]bool{}, deployments: map[templateKey]bool{}, going: map[templateKey]bool{}}
	add := func(to map[templateKey]bool, o client.Object, machine *clusterv1.MachineSpec) {
		if !o.GetDeletionTimestamp().IsZero() {
			to = u.going
		}
		to[keyOf(&machine.InfrastructureRef)] = true
		if machine.Bootstrap.ConfigRef != nil {
			to[keyOf(machine.Bootstrap.ConfigRef)] = true
		}
	}
	var deployments clusterv1.MachineDeploymentList
	if err := reader.List(ctx, &deployments, of...); err != nil {
		return users{}, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	for i := range deployments.Items {
		add(u.deployments, &deployments.Items[i], &deployments.Items[i].Spec.Template.Spec)
	}
	var sets clusterv1.MachineSetList
	inCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}
	if err := reader.List(ctx, &sets, client.InNamespace(cluster.Namespace), inCluster); err != nil {
		return users{}, fmt.Errorf("listing MachineSets: %w", err)
	}
	for i := range sets.Items {
		add(u.sets, &sets.Items[i], &sets.Items[i].Spec.Template.Spec)
	}
	return u, nil
}
