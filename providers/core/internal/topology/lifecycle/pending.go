package lifecycle

import (
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

// IsPending reports whether a hook is still to be called.
func IsPending(cluster *clusterv1.Cluster, hook Hook) bool {
	return slices.Contains(pending(cluster), string(hook))
}

// MarkPending records that hooks are still to be called.
func MarkPending(cluster *clusterv1.Cluster, hooks ...Hook) {
	all := pending(cluster)
	for _, hook := range hooks {
		all = append(all, string(hook))
	}
	setPending(cluster, all)
}

// MarkCalled records that hooks were called.
func MarkCalled(cluster *clusterv1.Cluster, hooks ...Hook) {
	setPending(cluster, slices.DeleteFunc(pending(cluster), func(name string) bool { return slices.Contains(hooks, Hook(name)) }))
}

// pending returns the names of all pending hooks, also of those that this release does not know.
func pending(cluster *clusterv1.Cluster) []string {
	return strings.FieldsFunc(cluster.Annotations[runtimev1.PendingHooksAnnotation], func(r rune) bool { return r == ',' || r == ' ' })
}

// setPending removes the annotation if there are no hooks.
func setPending(cluster *clusterv1.Cluster, hooks []string) {
	if len(hooks) == 0 {
		delete(cluster.Annotations, runtimev1.PendingHooksAnnotation)
		return
	}
	slices.Sort(hooks)
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[runtimev1.PendingHooksAnnotation] = strings.Join(slices.Compact(hooks), ",")
}

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
