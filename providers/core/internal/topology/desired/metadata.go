package desired

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterLabels returns the labels of every object of a topology, and of the Cluster itself.
func ClusterLabels(cluster *clusterv1.Cluster) map[string]string {
	return map[string]string{clusterv1.ClusterNameLabel: cluster.Name, clusterv1.ClusterTopologyOwnedLabel: ""}
}

// merge returns the union of the maps; later maps override earlier ones. It is nil if all of them are empty.
func merge(all ...map[string]string) map[string]string {
	var out map[string]string
	for _, one := range all {
		if out == nil && len(one) > 0 {
			out = make(map[string]string, len(one))
		}
		maps.Copy(out, one)
	}
	return out
}

// owner returns an owner reference to the Cluster.
func owner(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}
}

// controller returns a controller reference to the Cluster.
func controller(cluster *clusterv1.Cluster) *metav1.OwnerReference {
	return metav1.NewControllerRef(cluster, clusterv1.GroupVersion.WithKind("Cluster"))
}

// copyTemplate returns a copy of a template of the class for the Cluster. It keeps the labels and annotations.
func copyTemplate(
	cluster *clusterv1.Cluster, source *unstructured.Unstructured, name string, labels map[string]string,
) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSONValue(source.Object["spec"])}}
	out.SetAPIVersion(source.GetAPIVersion())
	out.SetKind(source.GetKind())
	out.SetNamespace(cluster.Namespace)
	out.SetName(name)
	out.SetLabels(merge(source.GetLabels(), labels))
	annotations := source.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	out.SetAnnotations(merge(annotations, map[string]string{
		clusterv1.TemplateClonedFromNameAnnotation:      source.GetName(),
		clusterv1.TemplateClonedFromGroupKindAnnotation: source.GroupVersionKind().GroupKind().String(),
	}))
	out.SetOwnerReferences([]metav1.OwnerReference{owner(cluster)})
	return out
}

// or returns the first value that is not nil.
func or[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}
