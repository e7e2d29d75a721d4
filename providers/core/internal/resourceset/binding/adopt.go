package binding

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// adopt completes an existing binding, which may be one of an older version or restored from a backup.
func (c *Controller) adopt(ctx context.Context, s *scope) (step.Result, error) {
	if s.binding == nil {
		return step.Done(), nil
	}
	return step.Done(), c.Patch(ctx, s.binding, func() { complete(s) }, step.IfUnchanged)
}

// complete sets name and owners of the binding.
func complete(s *scope) {
	b := s.binding
	if b.Spec.ClusterName == "" {
		b.Spec.ClusterName = s.cluster.Name
	}
	if slices.ContainsFunc(b.OwnerReferences, isCluster) {
		b.OwnerReferences = slices.DeleteFunc(slices.Clone(b.OwnerReferences), isCluster)
	}
	for _, set := range s.sets {
		if s.entry(set.Name) != nil {
			b.OwnerReferences, _ = ownership.Ensure(b.OwnerReferences, Owner(set))
		}
	}
}

// isCluster reports whether an owner is a Cluster. Older versions made it one; now, this controller deletes the binding.
func isCluster(r metav1.OwnerReference) bool {
	group, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && group.Group == clusterv1.GroupVersion.Group && r.Kind == clusterv1.ClusterKind
}
