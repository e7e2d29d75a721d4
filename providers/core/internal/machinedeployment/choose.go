package machinedeployment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// choose finds the MachineSet of the current template, or determines the name of a new one. If rolloutAfter is in the future, it
// requeues the MachineDeployment for that time.
func (c *Controller) choose(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	result := step.Done()
	notBefore := time.Time{}
	if after := md.Spec.Rollout.After; !after.IsZero() {
		if wait := after.Sub(c.Clock.Now()); wait > 0 {
			result = step.Again(wait)
		} else {
			notBefore = after.Time
		}
	}
	s.current = current(s.sets, &md.Spec.Template, notBefore)
	if s.current == nil {
		s.current = s.createdFor(notBefore)
	}
	if s.current != nil || ptr.Deref(md.Spec.Paused, false) {
		return result, nil
	}
	var err error
	s.newIdentity, err = c.freeIdentity(ctx, s, notBefore)
	return result, err
}

// createdFor returns the MachineSet that was created for the current template, and whose template was not edited afterwards. Its
// template may still differ from the deployment's, if a webhook or policy changes MachineSets during admission. A replacement would
// differ in the same way, and so on without end.
func (s *scope) createdFor(notBefore time.Time) *clusterv1.MachineSet {
	var more []string
	for {
		ids := identitiesOf(s.deployment, notBefore, more...)
		for _, set := range s.sets {
			id := identity{name: set.Name, hash: set.Labels[clusterv1.MachineDeploymentUniqueLabel]}
			if slices.Contains(ids, id) && metav1.IsControlledBy(set, s.deployment) && !edited(set) {
				return set
			}
		}
		if !slices.ContainsFunc(ids, func(id identity) bool { return s.names[id.name] }) {
			return nil
		}
		more = append(more, again) // The name was taken: see freeIdentity.
	}
}

// edited reports whether another field manager changed a field of the template that cannot change without replacing Machines.
// Changes during admission count as changes by the client.
func edited(set *clusterv1.MachineSet) bool {
	for _, entry := range set.ManagedFields {
		if entry.Manager == fieldManager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return true // compare only the template
		}
		template, _, err := unstructured.NestedMap(fields, "f:spec", "f:template", "f:spec")
		delete(template, "f:minReadySeconds")
		if len(template) > 0 || err != nil {
			return true
		}
	}
	return false
}

// current returns the MachineSet with a template that was not created before notBefore. If there are several, it returns the one
// with the most replicas, then the oldest.
func current(sets []*clusterv1.MachineSet, template *clusterv1.MachineTemplateSpec, notBefore time.Time) *clusterv1.MachineSet {
	wanted := rolledOut(template)
	var found []*clusterv1.MachineSet
	for _, set := range sets {
		if !set.CreationTimestamp.Time.Before(notBefore) && equality.Semantic.DeepEqual(rolledOut(&set.Spec.Template), wanted) {
			found = append(found, set)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return slices.MinFunc(found, func(a, b *clusterv1.MachineSet) int {
		return cmp.Or(cmp.Compare(ptr.Deref(b.Spec.Replicas, 0), ptr.Deref(a.Spec.Replicas, 0)), byAge(a, b))
	})
}

// rolledOut returns the part of a template that cannot change without replacing Machines: all except labels, annotations, and what
// setInPlace sets.
func rolledOut(template *clusterv1.MachineTemplateSpec) *clusterv1.MachineTemplateSpec {
	out := template.DeepCopy()
	out.ObjectMeta = clusterv1.ObjectMeta{}
	setInPlace(&out.Spec, &clusterv1.MachineSpec{})
	return out
}

// setInPlace sets the fields of a template that change without replacing Machines.
func setInPlace(template, from *clusterv1.MachineSpec) {
	template.Deletion, template.MinReadySeconds = from.Deletion, from.MinReadySeconds
	template.ReadinessGates, template.Taints = from.ReadinessGates, from.Taints
}

// again makes another identity for the same template.
const again = "again"

// freeIdentity returns the first identity whose name is free. A name is taken if its MachineSet cannot become the current one,
// because it is being deleted or its template was edited. The MachineSets were listed by cluster name label; one that has lost
// the label is found by its name, in the cache. One that has the label was created after they were listed, by another leader.
func (c *Controller) freeIdentity(ctx context.Context, s *scope, notBefore time.Time) (identity, error) {
	var more []string
	for {
		id := identityOf(s.deployment, notBefore, more...)
		if !s.names[id.name] {
			found := &clusterv1.MachineSet{}
			err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.deployment.Namespace, Name: id.name}, found)
			if apierrors.IsNotFound(err) {
				return id, nil
			}
			if err != nil {
				return identity{}, fmt.Errorf("looking for MachineSet %s: %w", id.name, err)
			}
			if found.Labels[clusterv1.ClusterNameLabel] == s.deployment.Spec.ClusterName {
				return identity{}, step.Stale("MachineSet %s was created after MachineSets were listed", id.name)
			}
		}
		more = append(more, again)
	}
}
