package machinedeployment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
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
	"sigs.k8s.io/cluster-api/sdk/naming"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// identity identifies a MachineSet within its deployment.
type identity struct {
	name string
	// hash is the value of the label machine-template-hash; it ends with the suffix of the name.
	hash string
}

// choose finds the MachineSet of the current template, or determines the name of a new one. If rolloutAfter is in the future, it
// requeues the MachineDeployment for that time.
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
		s.current = s.createdAs(identityOf(md, notBefore))
	}
	if s.current != nil || md.Spec.Paused {
		return result, nil
	}
	var err error
	s.newIdentity, err = c.freeIdentity(ctx, s, notBefore)
	return result, err
}

// createdAs returns the MachineSet that was created with an identity and whose template was not edited afterwards. Its template
// may still differ from the deployment's, if a webhook or policy changes MachineSets during admission. A replacement would
// differ in the same way, and so on without end.
func (s *scope) createdAs(id identity) *clusterv1.MachineSet {
	for _, set := range s.sets {
		if set.Name == id.name && set.Labels[clusterv1.MachineDeploymentUniqueLabel] == id.hash &&
			metav1.IsControlledBy(set, s.deployment) && !edited(set) {
			return set
		}
	}
	return nil
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
		if _, found, err := unstructured.NestedFieldNoCopy(fields, "f:spec", "f:template", "f:spec"); found || err != nil {
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

// rolledOut returns the part of a template that cannot change without replacing Machines: all except labels, annotations,
// timeouts, readiness gates, taints, and the API versions of references.
func rolledOut(template *clusterv1.MachineTemplateSpec) *clusterv1.MachineTemplateSpec {
	out := template.DeepCopy()
	out.ObjectMeta = clusterv1.ObjectMeta{}
	out.Spec.NodeDrainTimeout, out.Spec.NodeVolumeDetachTimeout, out.Spec.NodeDeletionTimeout = nil, nil, nil
	out.Spec.ReadinessGates, out.Spec.Taints = nil, nil
	dropVersion(&out.Spec.InfrastructureRef)
	if out.Spec.Bootstrap.ConfigRef != nil {
		dropVersion(out.Spec.Bootstrap.ConfigRef)
	}
	return out
}

func dropVersion(ref *corev1.ObjectReference) {
	ref.APIVersion = ref.GroupVersionKind().Group
}

// identityOf derives the identity of a MachineSet from its purpose, so that creating it twice is a conflict. The values of more
// distinguish sets for the same purpose.
func identityOf(md *clusterv1.MachineDeployment, notBefore time.Time, more ...string) identity {
	hash := hashOf(&md.Spec.Template)
	parts := []string{string(md.UID), hash}
	if !notBefore.IsZero() {
		parts = append(parts, notBefore.UTC().Format(time.RFC3339))
	}
	suffix := naming.Suffix(append(parts, more...)...)
	return identity{name: naming.WithSuffix(md.Name, suffix), hash: hash + "-" + suffix}
}

// hashOf returns a hash of the part of a template that cannot change without replacing Machines. It is in the names and labels of
// MachineSets, so that a template must always have the same: fields that templates did not have when the first hashes were stored
// do not count, and rolledOut has removed their values.
func hashOf(template *clusterv1.MachineTemplateSpec) string {
	later := strings.NewReplacer(
		" ReadinessGates:([]v1beta2.MachineReadinessGate)<nil>", "",
		" Taints:([]v1beta2.MachineTaint)<nil>", "",
	)
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(later.Replace(dump.ForHash(rolledOut(template))))) // a hash never fails to write
	return strconv.FormatUint(uint64(sum.Sum32()), 10)
}

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
		more = append(more, "again")
	}
}
