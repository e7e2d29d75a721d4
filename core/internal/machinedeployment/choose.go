package machinedeployment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/dump"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/naming"
	"sigs.k8s.io/cluster-api/provider/step"
)

// identity is what tells a MachineSet from others of the same deployment.
type identity struct {
	name string
	// hash is the value of the label machine-template-hash; it ends like the name.
	hash string
}

// choose finds the MachineSet of the current template, or a name for it. The result comes back when
// rolloutAfter passes.
func (c *Controller) choose(ctx context.Context, s *scope) (step.Result, error) {
	md := s.deployment
	result := step.Done()
	notBefore := time.Time{}
	if after := md.Spec.RolloutAfter; after != nil {
		if wait := after.Sub(c.Clock.Now()); wait > 0 {
			result = step.Again(wait)
		} else {
			notBefore = after.Time
		}
	}
	s.current = current(s.sets, &md.Spec.Template, notBefore)
	if s.current == nil {
		s.current = s.made(identityOf(md, notBefore))
	}
	if s.current != nil || md.Spec.Paused {
		return result, nil
	}
	var err error
	s.fresh, err = c.freeIdentity(ctx, s, notBefore)
	return result, err
}

// made is the MachineSet that was made for an identity and whose template nobody changed. It may differ from the
// deployment's all the same, when a webhook or a policy of somebody else changes MachineSets as they are made. To replace it
// for that would lead to one more that differs, and so on.
func (s *scope) made(id identity) *clusterv1.MachineSet {
	for _, set := range s.sets {
		if set.Name == id.name && set.Labels[clusterv1.MachineDeploymentUniqueLabel] == id.hash && metav1.IsControlledBy(set, s.deployment) && !edited(set) {
			return set
		}
	}
	return nil
}

// edited is whether somebody else wrote a field of a MachineSet's template that cannot change without replacing Machines.
// What admission changes in a request counts as written by whoever sent it.
func edited(set *clusterv1.MachineSet) bool {
	for _, entry := range set.ManagedFields {
		if entry.Manager == fieldManager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		fields := map[string]any{}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return true // then the template alone counts
		}
		if _, found, err := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:template", "f:spec"); found || err != nil {
			return true
		}
	}
	return false
}

// current is the MachineSet that has a template and was not made before a time: of several the biggest, then
// the oldest.
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

// rolledOut is the part of a template that cannot change without replacing Machines: everything but labels,
// annotations, timeouts, and which version of an API a reference is written in.
func rolledOut(template *clusterv1.MachineTemplateSpec) *clusterv1.MachineTemplateSpec {
	out := template.DeepCopy()
	out.ObjectMeta = clusterv1.ObjectMeta{}
	out.Spec.NodeDrainTimeout, out.Spec.NodeVolumeDetachTimeout, out.Spec.NodeDeletionTimeout = nil, nil, nil
	dropVersion(&out.Spec.InfrastructureRef)
	if out.Spec.Bootstrap.ConfigRef != nil {
		dropVersion(out.Spec.Bootstrap.ConfigRef)
	}
	return out
}

func dropVersion(ref *corev1.ObjectReference) {
	ref.APIVersion = ref.GroupVersionKind().Group
}

// identityOf names a MachineSet after what it is for, so that making it twice collides. More tells apart those for the same.
func identityOf(md *clusterv1.MachineDeployment, notBefore time.Time, more ...string) identity {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(dump.ForHash(rolledOut(&md.Spec.Template)))) // a hash never fails to write
	hash := strconv.FormatUint(uint64(sum.Sum32()), 10)
	parts := []string{string(md.UID), hash}
	if !notBefore.IsZero() {
		parts = append(parts, notBefore.UTC().Format(time.RFC3339))
	}
	suffix := naming.Suffix(append(parts, more...)...)
	return identity{name: naming.WithSuffix(md.Name, suffix), hash: hash + "-" + suffix}
}

// freeIdentity is the first identity whose name is free. A MachineSet that already has a name but cannot be used, because it
// is being deleted or somebody changed its template, leads to the next one. MachineSets were listed by the label of their
// Cluster; one that has lost it can only be found by its name, and for that the cache will do.
func (c *Controller) freeIdentity(ctx context.Context, s *scope, notBefore time.Time) (identity, error) {
	var more []string
	for {
		id := identityOf(s.deployment, notBefore, more...)
		if !s.names[id.name] {
			err := c.Client.Get(ctx, client.ObjectKey{Namespace: s.deployment.Namespace, Name: id.name}, &clusterv1.MachineSet{})
			if apierrors.IsNotFound(err) {
				return id, nil
			}
			if err != nil {
				return identity{}, fmt.Errorf("looking for MachineSet %s: %w", id.name, err)
			}
		}
		more = append(more, "again")
	}
}
