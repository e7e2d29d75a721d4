package lifecycle

import (
	"slices"
	"strings"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Step returns the version that the control plane was last to get in an upgrade by several steps; empty if there is no such upgrade.
func Step(cluster *clusterv1.Cluster) string {
	return cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation]
}

// MarkStep records the version that the control plane is going to get. Empty: the upgrade has ended.
func MarkStep(cluster *clusterv1.Cluster, version string) {
	if version == "" {
		delete(cluster.Annotations, clusterv1.ClusterTopologyUpgradeStepAnnotation)
		return
	}
	if cluster.Annotations == nil {
		cluster.Annotations = map[string]string{}
	}
	cluster.Annotations[clusterv1.ClusterTopologyUpgradeStepAnnotation] = version
}

// HeldByAnnotation returns the sorted annotations of a Cluster that block an upgrade before it begins.
func HeldByAnnotation(cluster *clusterv1.Cluster) []string {
	var out []string
	for name := range cluster.Annotations {
		if strings.HasPrefix(name, clusterv1.BeforeClusterUpgradeHookAnnotationPrefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
