package restored

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// again is the delay before a Cluster is compared again, whose Machines and Nodes did not match or which did not respond: its Nodes are not
// watched. Users who delete or add machines wait for it.
const again = 15 * time.Second

// compare resumes the Cluster if its Machines match its Nodes.
func (c *Controller) compare(ctx context.Context, cluster *clusterv1.Cluster) (step.Result, error) {
	backup := cluster.Annotations[clusterv1.PausedByRestoreAnnotation]
	nodes, err := c.nodes(ctx, client.ObjectKeyFromObject(cluster))
	if remote.IsNotConnected(err) {
		c.hold(cluster, clusterv1.ClusterNodesNotReadReason,
			"the Nodes of the workload cluster could not be read yet; to resume it anyway, set spec.paused to false")
		return step.WaitAtMost(again, "a connection to the workload cluster"), nil
	}
	if err != nil {
		return step.Done(), fmt.Errorf("listing the Nodes of the workload cluster: %w", err)
	}
	machines, pools := &clusterv1.MachineList{}, &clusterv1.MachinePoolList{}
	for _, list := range []client.ObjectList{machines, pools} {
		if err := c.Client.List(ctx, list, ownership.InCluster(cluster.Namespace, cluster.Name), client.UnsafeDisableDeepCopy); err != nil {
			return step.Done(), fmt.Errorf("listing the Machines of Cluster %s: %w", cluster.Name, err)
		}
	}
	at, err := time.Parse(time.RFC3339, backup)
	if err != nil {
		at = time.Time{} // Every Node without a Machine counts.
	}
	found := differences(at, nodes, machines.Items, pools.Items)
	if found.none() {
		c.release(cluster)
		cluster.Spec.Paused = ptr.To(false)
		step.Event(ctx, "RestoredClusterResumed", "Resumed: the Machines of the backup of %s match the Nodes", backup)
		return step.Done(), nil
	}
	c.hold(cluster, clusterv1.ClusterBackupOutdatedReason, found.String()+"; compare them, and set spec.paused to false")
	return step.WaitAtMost(again, "a user to resume the Cluster"), nil
}

// hold reports why the Cluster stays paused.
func (c *Controller) hold(cluster *clusterv1.Cluster, reason, why string) {
	message := fmt.Sprintf("The Cluster was restored from a backup of %s, and is paused: %s",
		cluster.Annotations[clusterv1.PausedByRestoreAnnotation], why)
	const severity = clusterv1.ConditionSeverityWarning
	condition.Set(cluster, condition.False(clusterv1.BackupUpToDateV1Beta1Condition, severity, reason, "%s", message))
	report.Set(cluster, cluster.Generation, c.Clock.Now(), report.False(clusterv1.ClusterBackupUpToDateCondition, reason, "%s", message))
}
