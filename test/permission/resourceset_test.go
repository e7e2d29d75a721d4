package permission

import (
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// resourceSets creates ClusterResourceSets, whose manifests are applied when the Cluster is ready, and deletes one in the end.
func (w *world) resourceSets() (end func()) {
	w.t.Helper()
	w.do("create ClusterResourceSets", scenario.CreateResourceSets)
	return func() {
		w.waitFor("ClusterResourceSets", scenario.Bound("once ConfigMap", "once Secret", "reconcile ConfigMap"))
		w.do("delete a ClusterResourceSet", scenario.DeleteResourceSet)
		w.waitFor("delete a ClusterResourceSet", scenario.Bound("once ConfigMap", "once Secret"))
	}
}
