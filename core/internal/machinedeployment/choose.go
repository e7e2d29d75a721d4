package machinedeployment

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/dump"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/naming"
	"sigs.k8s.io/cluster-api/internal/step"
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
	return c.chooseFrom(ctx, c.Client, s)
}

func (c *Controller) chooseFrom(ctx context.Context, from client.Reader, s *scope) (step.Result, error) {
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
	if s.current != nil || md.Spec.Paused {
		return result, nil
	}
	var err error
	s.fresh, err = freeIdentity(ctx, from, md, notBefore)
	return result, err
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

// freeIdentity names a MachineSet after what it is for, so that making it twice collides. A MachineSet that
// already has that name but cannot be used, because it is being deleted or somebody changed its template,
// leads to the next name.
func freeIdentity(ctx context.Context, from client.Reader, md *clusterv1.MachineDeployment, notBefore time.Time) (identity, error) {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(dump.ForHash(rolledOut(&md.Spec.Template)))) // a hash never fails to write
	hash := strconv.FormatUint(uint64(sum.Sum32()), 10)
	parts := []string{string(md.UID), hash}
	if !notBefore.IsZero() {
		parts = append(parts, notBefore.UTC().Format(time.RFC3339))
	}
	for {
		suffix := naming.Suffix(parts...)
		id := identity{name: naming.WithSuffix(md.Name, suffix), hash: hash + "-" + suffix}
		err := from.Get(ctx, client.ObjectKey{Namespace: md.Namespace, Name: id.name}, &clusterv1.MachineSet{})
		if apierrors.IsNotFound(err) {
			return id, nil
		}
		if err != nil {
			return identity{}, fmt.Errorf("looking for MachineSet %s: %w", id.name, err)
		}
		parts = append(parts, "again")
	}
}
