package restore

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// confirm ends the reconcile until users have confirmed what is lost.
func (c *Controller) confirm(ctx context.Context, s *scope) (step.Result, error) {
	if s.Begun(fleetv1.RestoreStepHold) {
		return step.Done(), nil
	}
	spec, backup := &s.restore.Spec, s.restore.Status.Backup
	want := fmt.Sprintf("%s@%d", spec.ClusterName, backup.Revision)
	if spec.Confirm != "" && spec.Confirm != want {
		return s.Refuse("spec.confirm must be " + want), nil
	}
	var missing []string
	if spec.Confirm == "" {
		missing = append(missing, "spec.confirm to "+want)
	}
	if backup.OtherCluster && !ptr.Deref(spec.AcceptOtherCluster, false) {
		missing = append(missing, "spec.acceptOtherCluster to true")
	}
	if len(missing) == 0 {
		s.restore.Status.Phase = fleetv1.OperationPhaseRunning
		return step.Done(), nil
	}
	machines, err := c.controlPlaneMachines(ctx, s.clusterKey())
	if err != nil {
		return step.Result{}, err
	}
	var names []string
	for i := range machines {
		names = append(names, machines[i].Name)
	}
	return s.NotConfirmed("To go on, set " + strings.Join(missing, " and ") + ". " + consequences(spec.ClusterName, backup, names)), nil
}

// consequences says what a restore does.
func consequences(cluster string, backup *fleetv1.RestoredBackup, machines []string) string {
	text := fmt.Sprintf("What was written to Cluster %s since %s, when the backup was made, is lost", cluster,
		backup.Time.UTC().Format("2006-01-02 15:04:05 MST"))
	if len(machines) > 0 {
		text += fmt.Sprintf("; its control plane Machines are deleted: %s", strings.Join(machines, ", "))
	}
	text += "."
	if backup.OtherCluster {
		text += fmt.Sprintf(" The backup is of another Cluster, %s/%s: controllers in the restored cluster, such as those of clouds and "+
			"storage, act on what belongs to that one: %d Services of type LoadBalancer and %d PersistentVolumes are in the backup.",
			backup.Namespace, backup.Cluster, backup.LoadBalancers, backup.PersistentVolumes)
	}
	return text
}
