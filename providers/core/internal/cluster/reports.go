package cluster

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// reports returns the metav1 conditions of a Cluster; none if its family was not read.
func reports(s *scope) []metav1.Condition {
	if s.family == nil {
		return nil
	}
	all := []metav1.Condition{
		s.deletingReport(), s.probeReport(), s.infrastructureReport(), s.controlPlaneReport(), s.initializedReport(),
		s.workersAvailable(), s.rollingOut(), s.scalingUp(), s.scalingDown(), s.remediating(),
	}
	all = append(all, s.ofMachines()...)
	if !s.Spec.Topology.IsDefined() {
		all = append(all, report.None(clusterv1.ClusterTopologyReconciledCondition))
	}
	return append(all, s.available(all))
}

// available summarizes the conditions that users of the Cluster depend on.
func (s *scope) available(now []metav1.Condition) metav1.Condition {
	sources := []report.Source{{Condition: *report.Find(now, clusterv1.DeletingCondition), Negative: true}}
	for _, t := range []string{
		clusterv1.ClusterRemoteConnectionProbeCondition, clusterv1.ClusterInfrastructureReadyCondition,
		clusterv1.ClusterControlPlaneAvailableCondition, clusterv1.ClusterWorkersAvailableCondition,
	} {
		if c := *report.Find(now, t); c.Status != "" {
			sources = append(sources, report.Source{Condition: c, Info: s.isExpected(c)})
		}
	}
	if s.Spec.Topology.IsDefined() {
		c := s.current(clusterv1.ClusterTopologyReconciledCondition)
		sources = append(sources, report.Source{Condition: c, Info: c.Status == metav1.ConditionFalse && !hurts(c.Reason)})
	}
	for _, gate := range s.family.gates {
		sources = append(sources, report.Source{
			Condition: s.current(gate.ConditionType), Negative: gate.Polarity == clusterv1.NegativePolarityCondition,
		})
	}
	return report.Summary(clusterv1.AvailableCondition, report.ReasonsOf(clusterv1.AvailableReason), sources...)
}

// current returns a condition that another controller sets.
func (s *scope) current(t string) metav1.Condition {
	if c := report.Get(s.Cluster, t); c != nil {
		return *c
	}
	return report.Missing(t)
}

// isExpected reports whether a condition is normal while the Cluster is being deleted: its objects are gone.
func (s *scope) isExpected(c metav1.Condition) bool {
	return s.DeletionTimestamp != nil &&
		(c.Reason == clusterv1.ObjectDeletedReason || c.Reason == clusterv1.ObjectDoesNotExistReason)
}

// hurts reports whether a Cluster is not available because its topology is not reconciled for this reason. Other reasons are temporary.
func hurts(reason string) bool {
	return reason == clusterv1.ClusterTopologyReconcileFailedReason ||
		reason == clusterv1.ClusterTopologyReconciledClusterClassNotReconciledReason
}

// probeReport reports whether the API server of the workload cluster responds. The watches of its Nodes are the probe.
func (s *scope) probeReport() metav1.Condition {
	t := clusterv1.ClusterRemoteConnectionProbeCondition
	before, lost := report.Get(s.Cluster, t), ""
	switch {
	case s.connection != nil && s.connection.up:
		return report.True(t, clusterv1.ClusterRemoteConnectionProbeSucceededReason, "")
	case before == nil:
		lost = "Remote connection not established yet"
	case s.connection == nil, before.Status != metav1.ConditionTrue,
		s.now.Sub(s.connection.since) < cmp.Or(s.connectionGrace, defaultConnectionGrace):
		return *before
	default:
		lost = "Remote connection probe failed, probe last succeeded at " + s.connection.since.UTC().Format(time.RFC3339)
	}
	return report.False(t, clusterv1.ClusterRemoteConnectionProbeFailedReason, "%s", lost)
}

func (s *scope) infrastructureReport() metav1.Condition {
	t := clusterv1.ClusterInfrastructureReadyCondition
	if !s.Spec.InfrastructureRef.IsDefined() {
		return report.True(t, clusterv1.ProvisionedReason, "")
	}
	return s.mirrored(s.infrastructure, reference.Mirror{
		Type: t, From: clusterv1.ReadyCondition, Kind: s.Spec.InfrastructureRef.Kind,
		Reasons: report.ReasonsOf(clusterv1.ReadyReason), Complete: ptr.Deref(s.Status.Initialization.InfrastructureProvisioned, false),
		Fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureClusterOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	})
}

// controlPlaneReport mirrors the condition Available of the control plane object. Control planes of Machines alone have none.
func (s *scope) controlPlaneReport() metav1.Condition {
	t := clusterv1.ClusterControlPlaneAvailableCondition
	if !s.Spec.ControlPlaneRef.IsDefined() {
		return report.None(t)
	}
	return s.mirrored(s.plane, reference.Mirror{
		Type: t, From: clusterv1.AvailableCondition, Kind: s.Spec.ControlPlaneRef.Kind,
		Reasons:  report.ReasonsOf(clusterv1.AvailableReason),
		Complete: condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition),
		Fallback: func(obj contract.Object) (bool, string, error) {
			plane := contract.ControlPlaneOf(obj)
			done, err := plane.Initialized()
			return done, plane.InitializationField(), err
		},
	})
}

// mirrored returns the condition for a provider object.
func (s *scope) mirrored(found reference.Found, m reference.Mirror) metav1.Condition {
	m.Found, m.Deleting, m.Owner = found, s.DeletionTimestamp != nil, "cluster"
	return m.Report(report.Get(s.Cluster, m.Type))
}

func (s *scope) initializedReport() metav1.Condition {
	t := clusterv1.ClusterControlPlaneInitializedCondition
	no := func(message string) metav1.Condition {
		return report.False(t, clusterv1.ClusterControlPlaneNotInitializedReason, "%s", message)
	}
	switch {
	case condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) || report.IsTrue(s.Cluster, t):
		return report.True(t, clusterv1.ClusterControlPlaneInitializedReason, "")
	case !s.Spec.ControlPlaneRef.IsDefined():
		return no("Waiting for the first control plane machine to have status.nodeRef set")
	case s.plane.Err != nil:
		return report.Unknown(t, clusterv1.InternalErrorReason, "%s", reference.Explained(s.plane.Err))
	case s.plane.Object == nil:
		return report.Unknown(t, clusterv1.ObjectDoesNotExistReason, "%s does not exist", s.Spec.ControlPlaneRef.Kind)
	}
	return no("Control plane not yet initialized")
}

// whilePaused reports that the topology is not reconciled while the Cluster is paused: its own controller writes nothing then.
func whilePaused(cluster *clusterv1.Cluster, paused metav1.Condition) []metav1.Condition {
	if !cluster.Spec.Topology.IsDefined() {
		return nil
	}
	return []metav1.Condition{report.False(clusterv1.ClusterTopologyReconciledCondition, cmp.Or(paused.Reason,
		clusterv1.PausedReason), "%s", paused.Message)}
}
