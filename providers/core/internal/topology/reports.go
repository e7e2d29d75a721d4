package topology

import (
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/plan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// state sets both forms of condition TopologyReconciled. The metav1 one is set here and not by the Runner: the Cluster controller
// reports all others, among them Paused.
func (c *Controller) state(s *scope, old clusterv1.Condition, now metav1.Condition) {
	condition.Set(s.cluster, old)
	report.Set(s.cluster, s.cluster.Generation, c.Clock.Now(), now)
}

func notReconciled(reason, message string) metav1.Condition {
	return report.False(clusterv1.ClusterTopologyReconciledCondition, reason, "%s", message)
}

// reconciledReport is reconciled in the form of v1beta2.
func reconciledReport(planned *plan.Plan, err error) metav1.Condition {
	if notReady, ok := errors.AsType[*plan.ClassNotReconciledError](err); ok {
		return notReconciled(clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason, notReady.Error())
	}
	if err != nil {
		return notReconciled(clusterv1.ClusterTopologyReconcileFailedReason, err.Error())
	}
	if planned.Hooks.HoldsCreation() {
		return notReconciled(clusterv1.ClusterTopologyReconciledClusterCreatingReason,
			"Following hooks are blocking create: "+blocking(planned.Hooks))
	}
	kind := "Control plane"
	if planned.ControlPlaneRef.IsDefined() {
		kind = planned.ControlPlaneRef.Kind
	}
	if reason, message, ok := planned.Versions.Upgrading(kind, blocking(planned.Hooks)); ok {
		return notReconciled(reason, message)
	}
	if _, message, waits := planned.Versions.Waiting(); waits { // Workers are created later.
		return notReconciled(clusterv1.ClusterTopologyReconciledClusterCreatingReason, message)
	}
	return report.True(clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterTopologyReconcileSucceededReason, "")
}

// blocking lists the hooks that block, with what their extensions say.
func blocking(o lifecycle.Outcome) string {
	var all []string
	for _, b := range o.Blocking {
		text := string(b.Hook)
		if b.Message != "" {
			text += ": " + b.Message
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// stateDeletion reports that a Cluster is being deleted, and what holds that back.
func (c *Controller) stateDeletion(s *scope, held string) {
	message := "Cluster is deleting"
	if held != "" {
		message += ". " + held
	}
	report.Set(s.cluster, s.cluster.Generation, c.Clock.Now(), notReconciled(clusterv1.DeletingReason, message))
}
