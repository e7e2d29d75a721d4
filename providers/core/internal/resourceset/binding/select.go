package binding

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Selector returns the selector of a ClusterResourceSet. One that is invalid or empty, which admission rejects, selects nothing.
func Selector(set *addonsv1.ClusterResourceSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.ClusterSelector)
	switch {
	case err != nil:
		return labels.Nothing(), fmt.Errorf("spec.clusterSelector is invalid: %w", err)
	case selector.Empty():
		return labels.Nothing(), errors.New("spec.clusterSelector must not be empty")
	}
	return selector, nil
}

// Selects reports whether a ClusterResourceSet selects a Cluster of its namespace.
func Selects(set *addonsv1.ClusterResourceSet, cluster *clusterv1.Cluster) bool {
	selector, _ := Selector(set) // Selects nothing on errors, which the condition of the ClusterResourceSet reports.
	return set.Namespace == cluster.Namespace && selector.Matches(labels.Set(cluster.Labels))
}

// Ready reports whether manifests can be applied to a Cluster: it is not being deleted, and its control plane is initialized.
func Ready(cluster *clusterv1.Cluster) bool {
	return cluster.DeletionTimestamp.IsZero() && condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition)
}

// Resources returns the ConfigMaps and Secrets of a ClusterResourceSet, each once.
func Resources(set *addonsv1.ClusterResourceSet) []addonsv1.ResourceRef {
	var out []addonsv1.ResourceRef
	for _, ref := range set.Spec.Resources {
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// selecting returns the ClusterResourceSets that select a Cluster, sorted by name. Those that are paused, or do not have their finalizer
// yet, are left out.
func (c *Controller) selecting(list *addonsv1.ClusterResourceSetList, cluster *clusterv1.Cluster) []*addonsv1.ClusterResourceSet {
	var out []*addonsv1.ClusterResourceSet
	for i := range list.Items {
		set := &list.Items[i]
		_, paused := set.Annotations[clusterv1.PausedAnnotation]
		if c.Filter.Selects(set) && !paused && set.DeletionTimestamp.IsZero() && Selects(set, cluster) &&
			controllerutil.ContainsFinalizer(set, addonsv1.ClusterResourceSetFinalizer) {
			out = append(out, set)
		}
	}
	slices.SortFunc(out, func(a, b *addonsv1.ClusterResourceSet) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
