package rollout

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout/wave"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// observe returns what a Cluster reports about itself. Managers before v1.9 report only conditions of v1beta1.
func (s *scope) observe(c *clusterv1.Cluster) wave.Observation {
	o := wave.Observation{
		Deleting: !c.DeletionTimestamp.IsZero(),
		Paused:   ptr.Deref(c.Spec.Paused, false) || hasAnnotation(c, clusterv1.PausedAnnotation),
		AtTarget: rolloutplan.Matches(&s.rollout.Spec.Change, c),
	}
	if report.Get(c, clusterv1.ClusterAvailableCondition) != nil {
		observeReports(c, &o)
	} else {
		observeConditions(c, &o)
	}
	for _, check := range s.checks {
		if !o.Healthy {
			break
		}
		if wrong := check.wrong(c); wrong != "" {
			o.Healthy, o.Unhealthy = false, wrong
		}
	}
	return o
}

// observeReports observes metav1 conditions.
func observeReports(c *clusterv1.Cluster, o *wave.Observation) {
	available := report.Get(c, clusterv1.ClusterAvailableCondition)
	o.Healthy, o.HealthChanged = available.Status == metav1.ConditionTrue, available.LastTransitionTime.Time
	if !o.Healthy {
		o.Unhealthy = text(available.Reason, available.Message)
	}
	o.Remediating = report.IsTrue(c, clusterv1.RemediatingCondition)
	topology := report.Get(c, clusterv1.ClusterTopologyReconciledCondition)
	rolling := report.Get(c, clusterv1.RollingOutCondition)
	switch {
	case topology == nil || topology.ObservedGeneration < c.Generation:
		o.Unsettled = "its topology is not reconciled yet"
	case topology.Status != metav1.ConditionTrue:
		o.Unsettled = text(topology.Reason, topology.Message)
		if topology.Reason == clusterv1.ClusterTopologyReconcileFailedReason {
			o.Failing, o.FailingSince = topology.Message, topology.LastTransitionTime.Time
		}
	case rolling != nil && rolling.Status == metav1.ConditionTrue:
		o.Unsettled = text(rolling.Reason, rolling.Message)
	default:
		o.Settled = true
	}
}

// observeConditions observes conditions of v1beta1.
func observeConditions(c *clusterv1.Cluster, o *wave.Observation) {
	ready := condition.Get(c, clusterv1.ReadyV1Beta1Condition)
	switch {
	case ready == nil:
		o.Unhealthy = "it reports no conditions"
	default:
		o.Healthy, o.HealthChanged = ready.Status == "True", ready.LastTransitionTime.Time
		if !o.Healthy {
			o.Unhealthy = text(ready.Reason, ready.Message)
		}
	}
	topology := condition.Get(c, clusterv1.TopologyReconciledV1Beta1Condition)
	switch {
	case topology == nil || c.Status.ObservedGeneration < c.Generation:
		o.Unsettled = "its topology is not reconciled yet"
	case topology.Status != "True":
		o.Unsettled = text(topology.Reason, topology.Message)
		if topology.Reason == clusterv1.TopologyReconcileFailedV1Beta1Reason {
			o.Failing, o.FailingSince = topology.Message, topology.LastTransitionTime.Time
		}
	default:
		o.Settled = true
	}
}

// text returns a condition in words.
func text(reason, message string) string {
	if message == "" {
		return reason
	}
	return message
}

func hasAnnotation(obj metav1.Object, key string) bool {
	_, ok := obj.GetAnnotations()[key]
	return ok
}

func sameLabels(a, b *clusterv1.Cluster) bool      { return maps.Equal(a.Labels, b.Labels) }
func sameAnnotations(a, b *clusterv1.Cluster) bool { return maps.Equal(a.Annotations, b.Annotations) }

// sameReports reports whether two Clusters report the same about what rollouts look at.
func sameReports(a, b *clusterv1.Cluster) bool {
	for _, t := range []string{
		clusterv1.ClusterAvailableCondition, clusterv1.ClusterTopologyReconciledCondition,
		clusterv1.RollingOutCondition, clusterv1.RemediatingCondition,
	} {
		before, after := report.Get(a, t), report.Get(b, t)
		if before == nil || after == nil {
			if before != after {
				return false
			}
			continue
		}
		if !report.Same(*before, *after) || before.ObservedGeneration != after.ObservedGeneration {
			return false
		}
	}
	for _, t := range []clusterv1.ConditionType{clusterv1.ReadyV1Beta1Condition, clusterv1.TopologyReconciledV1Beta1Condition} {
		before, after := condition.Get(a, t), condition.Get(b, t)
		if (before == nil) != (after == nil) || before != nil && (before.Status != after.Status || before.Reason != after.Reason) {
			return false
		}
	}
	return a.Status.ObservedGeneration == b.Status.ObservedGeneration
}
