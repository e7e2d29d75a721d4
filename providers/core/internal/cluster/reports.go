package cluster

import (
	"cmp"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
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
	if s.Spec.Topology == nil {
		all = append(all, report.None(clusterv1beta2.ClusterTopologyReconciledCondition))
	}
	return append(all, s.available(all))
}

// reasons are the reasons of conditions that are derived from others, by their type.
func reasons(t string) report.Reasons {
	return report.Reasons{True: t, False: "Not" + t, Unknown: t + "Unknown"}
}

// available summarizes the conditions that users of the Cluster depend on.
func (s *scope) available(now []metav1.Condition) metav1.Condition {
	sources := []report.Source{{Condition: *report.Find(now, clusterv1beta2.DeletingCondition), Negative: true}}
	for _, t := range []string{
		clusterv1beta2.ClusterRemoteConnectionProbeCondition, clusterv1beta2.ClusterInfrastructureReadyCondition,
		clusterv1beta2.ClusterControlPlaneAvailableCondition, clusterv1beta2.ClusterWorkersAvailableCondition,
	} {
		if c := *report.Find(now, t); c.Status != "" {
			sources = append(sources, report.Source{Condition: c, Info: s.isExpected(c)})
		}
	}
	if s.Spec.Topology != nil {
		c := s.current(clusterv1beta2.ClusterTopologyReconciledCondition)
		sources = append(sources, report.Source{Condition: c, Info: c.Status == metav1.ConditionFalse && !hurts(c.Reason)})
	}
	for _, gate := range s.family.gates {
		sources = append(sources, report.Source{
			Condition: s.current(gate.ConditionType), Negative: gate.Polarity == clusterv1beta2.NegativePolarityCondition,
		})
	}
	return report.Summary(clusterv1beta2.AvailableCondition, reasons(clusterv1beta2.AvailableReason), sources...)
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
		(c.Reason == clusterv1beta2.ObjectDeletedReason || c.Reason == clusterv1beta2.ObjectDoesNotExistReason)
}

// hurts reports whether a Cluster is not available because its topology is not reconciled for this reason. Other reasons are temporary.
func hurts(reason string) bool {
	return reason == clusterv1beta2.ClusterTopologyReconcileFailedReason ||
		reason == clusterv1beta2.ClusterTopologyReconciledClusterClassNotReconciledReason
}

// probeReport reports whether the API server of the workload cluster responds. The watches of its Nodes are the probe.
func (s *scope) probeReport() metav1.Condition {
	t := clusterv1beta2.ClusterRemoteConnectionProbeCondition
	before, lost := report.Get(s.Cluster, t), ""
	switch {
	case s.connection != nil && s.connection.up:
		return report.True(t, clusterv1beta2.ClusterRemoteConnectionProbeSucceededReason, "")
	case before == nil:
		lost = "Remote connection not established yet"
	case s.connection == nil, before.Status != metav1.ConditionTrue, s.now.Sub(s.connection.since) < connectionGrace:
		return *before
	default:
		lost = "Remote connection probe failed, probe last succeeded at " + s.connection.since.UTC().Format(time.RFC3339)
	}
	return report.False(t, clusterv1beta2.ClusterRemoteConnectionProbeFailedReason, "%s", lost)
}

func (s *scope) infrastructureReport() metav1.Condition {
	t := clusterv1beta2.ClusterInfrastructureReadyCondition
	if s.Spec.InfrastructureRef == nil {
		return report.True(t, clusterv1beta2.ProvisionedReason, "")
	}
	return s.mirrored(mirror{
		t: t, from: clusterv1beta2.ReadyCondition, ref: s.Spec.InfrastructureRef, found: s.infrastructure,
		reasons: reasons(clusterv1beta2.ReadyReason), complete: s.Status.InfrastructureReady,
		fallback: func(obj contract.Object) (bool, string, error) {
			infra := contract.InfrastructureClusterOf(obj)
			done, err := infra.Provisioned()
			return done, infra.ProvisionedField(), err
		},
	})
}

// controlPlaneReport mirrors the condition Available of the control plane object. Control planes of Machines alone have none.
func (s *scope) controlPlaneReport() metav1.Condition {
	t := clusterv1beta2.ClusterControlPlaneAvailableCondition
	if s.Spec.ControlPlaneRef == nil {
		return report.None(t)
	}
	return s.mirrored(mirror{
		t: t, from: clusterv1beta2.AvailableCondition, ref: s.Spec.ControlPlaneRef, found: s.plane,
		reasons: reasons(clusterv1beta2.AvailableReason), complete: condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedCondition),
		fallback: func(obj contract.Object) (bool, string, error) {
			plane := contract.ControlPlaneOf(obj)
			done, err := plane.Initialized()
			return done, plane.InitializationField(), err
		},
	})
}

// mirror is how a condition of a provider object becomes one of the Cluster.
type mirror struct {
	t, from string
	ref     *corev1.ObjectReference
	found   target
	reasons report.Reasons
	// complete is set if the object has been ready before.
	complete bool
	// fallback returns the state of an object without the condition, and the field that has it.
	fallback func(contract.Object) (done bool, field string, err error)
}

func (s *scope) mirrored(m mirror) metav1.Condition {
	switch {
	case m.found.err != nil && step.IsStale(m.found.err) && report.Get(s.Cluster, m.t) != nil:
		return *report.Get(s.Cluster, m.t)
	case m.found.err != nil:
		return report.Unknown(m.t, clusterv1beta2.InternalErrorReason, "%s", explained(m.found.err))
	case m.found.object == nil:
		return s.absent(m)
	}
	conditions, err := m.found.object.Reports()
	if err != nil {
		return report.Unknown(m.t, clusterv1beta2.InvalidConditionReportedReason, "%s", err.Error())
	}
	if c := report.Find(conditions, m.from); c != nil {
		if !isValid(*c) {
			return report.Unknown(m.t, clusterv1beta2.InvalidConditionReportedReason,
				"condition %s of %s has status %q and reason %q, which are invalid", m.from, m.ref.Kind, condition.Brief(string(c.Status)),
				condition.Brief(c.Reason))
		}
		if c.Status == metav1.ConditionTrue && c.Reason == clusterv1beta2.NoReasonReportedReason {
			c.Reason = m.reasons.True
		}
		mirrored := report.Unknown(m.t, c.Reason, "%s", c.Message) // Bounds the message.
		mirrored.Status = c.Status
		return mirrored
	}
	done, field, err := m.fallback(*m.found.object)
	if err != nil {
		return report.Unknown(m.t, clusterv1beta2.InvalidConditionReportedReason, "%s", err.Error())
	}
	if done {
		return report.True(m.t, m.reasons.True, "")
	}
	return report.False(m.t, m.reasons.False, "%s %s is false", m.ref.Kind, field)
}

// maxReason is how long a reason can be.
const maxReason = 1024

// isValid reports whether an API server would accept status and reason of a condition: the definitions of providers may be less strict.
func isValid(c metav1.Condition) bool {
	for i, r := range c.Reason {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		other := '0' <= r && r <= '9' || r == '_' || (i < len(c.Reason)-1 && (r == ',' || r == ':'))
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return len(c.Reason) <= maxReason &&
		slices.Contains([]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}, c.Status)
}

// explained returns the text of an error about a reference; others are in the log.
func explained(err error) string {
	if of, ok := errors.AsType[*step.Error](err); ok {
		return of.Error()
	}
	return "Please check controller logs for errors"
}

// absent is the condition for an object that does not exist.
func (s *scope) absent(m mirror) metav1.Condition {
	switch {
	case s.DeletionTimestamp != nil && m.complete:
		return report.False(m.t, clusterv1beta2.ObjectDeletedReason, "%s has been deleted", m.ref.Kind)
	case m.complete:
		return report.False(m.t, clusterv1beta2.ObjectDeletedReason, "%s has been deleted while the cluster still exists", m.ref.Kind)
	}
	return report.False(m.t, clusterv1beta2.ObjectDoesNotExistReason, "%s does not exist", m.ref.Kind)
}

func (s *scope) initializedReport() metav1.Condition {
	t := clusterv1beta2.ClusterControlPlaneInitializedCondition
	no := func(message string) metav1.Condition {
		return report.False(t, clusterv1beta2.ClusterControlPlaneNotInitializedReason, "%s", message)
	}
	switch {
	case condition.IsTrue(s.Cluster, clusterv1.ControlPlaneInitializedCondition) || report.IsTrue(s.Cluster, t):
		return report.True(t, clusterv1beta2.ClusterControlPlaneInitializedReason, "")
	case s.Spec.ControlPlaneRef == nil:
		return no("Waiting for the first control plane machine to have status.nodeRef set")
	case s.plane.err != nil:
		return report.Unknown(t, clusterv1beta2.InternalErrorReason, "%s", explained(s.plane.err))
	case s.plane.object == nil:
		return report.Unknown(t, clusterv1beta2.ObjectDoesNotExistReason, "%s does not exist", s.Spec.ControlPlaneRef.Kind)
	}
	return no("Control plane not yet initialized")
}

// whilePaused reports that the topology is not reconciled while the Cluster is paused: its own controller writes nothing then.
func whilePaused(cluster *clusterv1.Cluster, paused metav1.Condition) []metav1.Condition {
	if cluster.Spec.Topology == nil {
		return nil
	}
	return []metav1.Condition{report.False(clusterv1beta2.ClusterTopologyReconciledCondition, cmp.Or(paused.Reason,
		clusterv1beta2.PausedReason), "%s", paused.Message)}
}
