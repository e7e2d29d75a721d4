package extension

import (
	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Sent returns a Cluster as requests contain it: with apiVersion and kind, and without what only API servers and kubectl read, the managed
// fields and the last applied configuration, which are most of the object.
func Sent(cluster *clusterv1.Cluster) clusterv1.Cluster {
	out := *cluster.DeepCopy()
	out.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	out.ManagedFields = nil
	delete(out.Annotations, corev1.LastAppliedConfigAnnotation)
	return out
}
