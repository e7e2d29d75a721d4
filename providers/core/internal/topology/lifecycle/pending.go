package lifecycle

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// IsPending reports whether a hook is still to be called.
func IsPending(cluster *clusterv1.Cluster, hook Hook) bool { return extension.IsPending(cluster, hook) }

// MarkPending records that hooks are still to be called.
func MarkPending(cluster *clusterv1.Cluster, hooks ...Hook) { extension.MarkPending(cluster, hooks...) }

// MarkCalled records that hooks were called.
func MarkCalled(cluster *clusterv1.Cluster, hooks ...Hook) { extension.MarkCalled(cluster, hooks...) }

// IsOKToDelete reports whether extensions have allowed the deletion of a Cluster to begin.
func IsOKToDelete(cluster *clusterv1.Cluster) bool {
	_, ok := cluster.Annotations[runtimev1.OkToDeleteAnnotation]
	return ok
}

// MarkOKToDelete records that extensions allow the deletion to begin.
func MarkOKToDelete(cluster *clusterv1.Cluster) {
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[runtimev1.OkToDeleteAnnotation] = ""
}
