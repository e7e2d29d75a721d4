package restored

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirmed accepts that a user has resumed the Cluster: differences are theirs.
func (c *Controller) confirmed(_ context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	if ptr.Deref(cluster.Spec.Paused, false) {
		return step.Done(), nil
	}
	c.release(cluster)
	return step.Stop(), nil
}

// release ends what the restore has begun.
func (c *Controller) release(cluster *clusterv1.Cluster) {
	delete(cluster.Annotations, clusterv1.PausedByRestoreAnnotation)
	condition.Delete(cluster, clusterv1.BackupUpToDateV1Beta1Condition)
	report.Set(cluster, cluster.Generation, c.Clock.Now(), report.None(clusterv1.ClusterBackupUpToDateCondition))
}
