package machine

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// readyReport summarizes the conditions that make a Machine ready, and those of its readiness gates.
func (s *scope) readyReport(now []metav1.Condition) metav1.Condition {
	deleting := *report.Find(now, clusterv1.DeletingCondition)
	if deleting.Status == metav1.ConditionTrue {
		deleting.Message = s.deletionSummary(deleting.Reason)
	}
	sources := []report.Source{
		{Condition: deleting, Negative: true},
		{Condition: *report.Find(now, clusterv1.MachineUpdatingCondition), Negative: true},
	}
	for _, t := range []string{
		clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.InfrastructureReadyCondition,
		clusterv1.MachineNodeHealthyCondition, clusterv1.MachineHealthCheckSucceededCondition,
	} {
		c := s.current(now, t)
		switch {
		case c == nil && t == clusterv1.MachineHealthCheckSucceededCondition:
		case c == nil:
			sources = append(sources, report.Source{Condition: report.Missing(t)})
		case s.machine.DeletionTimestamp == nil || !isGone(*c):
			sources = append(sources, report.Source{Condition: *c})
		}
	}
	var gates []report.Source
	for _, gate := range s.machine.Spec.ReadinessGates {
		c := s.current(now, gate.ConditionType)
		if c == nil {
			missing := report.Missing(gate.ConditionType)
			c = &missing
		}
		gates = append(gates, report.Source{Condition: *c, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	return report.Summary(clusterv1.ReadyCondition, report.ReasonsOf(clusterv1.ReadyReason), append(sources, collapsed(gates)...)...)
}

// isGone reports whether a condition says that an object is gone, which is right while the Machine is being deleted.
func isGone(c metav1.Condition) bool {
	return slices.Contains([]string{
		clusterv1.ObjectDeletedReason, clusterv1.ObjectDoesNotExistReason, clusterv1.MachineNodeDeletedReason,
	}, c.Reason)
}

const (
	// longDeletion is how long a deletion may take until it is called slow.
	longDeletion = 15 * time.Minute
	// longDrain is how long a drain may take until it is said what delays it.
	longDrain = 5 * time.Minute
)

// deletionSummary is a short form of the condition Deleting, whose message may be long.
func (s *scope) deletionSummary(stage string) string {
	summary := "Machine deletion in progress"
	if s.now.Sub(s.machine.DeletionTimestamp.Time) > longDeletion {
		summary += " since more than 15m"
	}
	summary += ", stage: " + stage
	if causes := s.delays(); len(causes) > 0 {
		summary += ", delay likely due to " + strings.Join(causes, ", ")
	}
	return summary
}

// delays returns what delays the drain, once it takes long.
func (s *scope) delays() []string {
	c := condition.Get(s.machine, clusterv1.DrainingSucceededV1Beta1Condition)
	if s.found.pods == nil || c == nil || s.now.Sub(c.LastTransitionTime.Time) <= longDrain {
		return nil
	}
	return s.found.pods.Causes()
}

// componentGates are the readiness gates of the Pods of a control plane.
var componentGates = []string{ // A constant list.
	"APIServerPodHealthy", "ControllerManagerPodHealthy", "SchedulerPodHealthy", "EtcdPodHealthy",
}

// collapsed replaces the gates of the control plane's Pods by one if the same is said about all of them.
func collapsed(gates []report.Source) []report.Source {
	first, same, count := -1, true, 0
	for i, g := range gates {
		if !slices.Contains(componentGates, g.Type) {
			continue
		}
		count++
		if first < 0 {
			first = i
		}
		same = same && g.Status == gates[first].Status && g.Message == gates[first].Message && g.Message != ""
	}
	if count < 2 || !same {
		return gates
	}
	out := slices.Clone(gates)
	out[first].Type = "Control plane components"
	return slices.DeleteFunc(out, func(g report.Source) bool { return slices.Contains(componentGates, g.Type) })
}

// availableReport reports whether the Machine has been ready for long enough, and how long that still takes.
func (s *scope) availableReport(ready metav1.Condition, now time.Time) (metav1.Condition, time.Duration) {
	t := clusterv1.AvailableCondition
	if ready.Status != metav1.ConditionTrue {
		return report.False(t, clusterv1.NotReadyReason, ""), 0
	}
	since := now
	if before := report.Get(s.machine, clusterv1.ReadyCondition); before != nil && before.Status == metav1.ConditionTrue {
		since = before.LastTransitionTime.Time
	}
	if left := since.Add(s.found.minReady).Sub(now); left > 0 && s.found.minReady > 0 {
		return report.False(t, clusterv1.MachineWaitingForMinReadySecondsReason, ""), left
	}
	return report.True(t, clusterv1.AvailableReason, ""), 0
}
