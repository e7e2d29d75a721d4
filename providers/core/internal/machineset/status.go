package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/replicas"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// status counts the Machines, once they have been listed. The result requeues the MachineSet when the next ready Machine becomes
// available.
func (c *Controller) status(_ context.Context, s *scope) (step.Result, error) {
	set := s.set
	if !s.listed {
		return step.Done(), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil || set.Spec.Replicas == nil {
		return step.Done(), nil // an earlier step has reported it
	}
	set.Status.Selector = selector.String()
	var counts Tally
	fullyLabeled := int32(0)
	template := labels.SelectorFromValidatedSet(set.Spec.Template.Labels)
	var children []condition.Child
	for _, m := range s.machines {
		counts.Add(m, MinReady(set), c.Clock.Now())
		if !m.DeletionTimestamp.IsZero() {
			continue
		}
		if template.Matches(labels.Set(m.Labels)) {
			fullyLabeled++
		}
		children = append(children, condition.Child{
			Ref: clusterv1.MachineKind + "/" + m.Name, Ready: condition.Get(m, clusterv1.ReadyV1Beta1Condition),
		})
	}
	set.Status.Replicas = &counts.Replicas
	set.Status.Versions = replicas.VersionsOf(s.machines).Status()
	setCounts(set, replicas.Count(s.machines))
	older := set.GetV1Beta1Status()
	older.FullyLabeledReplicas, older.ReadyReplicas, older.AvailableReplicas = &fullyLabeled, &counts.Ready, &counts.Available
	set.SetV1Beta1Status(older)
	if !set.DeletionTimestamp.IsZero() {
		return step.Done(), nil // Only the counters still change.
	}
	setResized(set, len(s.machines), int(counts.Ready))
	if c, ok := condition.Aggregate(clusterv1.MachinesReadyV1Beta1Condition, children); ok {
		condition.Set(set, c)
	} else if len(s.machines) == 0 {
		// It would keep reporting what was true of the last Machine.
		condition.Delete(set, clusterv1.MachinesReadyV1Beta1Condition)
	}
	return step.Again(counts.NextAvailable), nil
}

// setCounts sets the counters that follow from the conditions of Machines.
func setCounts(set *clusterv1.MachineSet, n replicas.Counts) {
	set.Status.ReadyReplicas, set.Status.AvailableReplicas, set.Status.UpToDateReplicas = &n.Ready, &n.Available, &n.UpToDate
}

// setResized sets the condition Resized. After scaling up, it becomes True only when all Machines are ready: clients that wait
// for it want to use the Machines.
func setResized(set *clusterv1.MachineSet, actual, ready int) {
	desired := int(max(0, *set.Spec.Replicas))
	switch {
	case actual < desired:
		condition.Set(set, scalingUp(desired, actual))
	case actual > desired:
		condition.Set(set, condition.False(clusterv1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning,
			clusterv1.ScalingDownV1Beta1Reason, "Scaling down MachineSet to %d replicas (actual %d)", desired, actual))
	case ready == desired:
		condition.Set(set, condition.True(clusterv1.ResizedV1Beta1Condition))
	case !condition.Has(set, clusterv1.ResizedV1Beta1Condition):
		condition.Set(set, scalingUp(desired, actual))
	}
}

func scalingUp(desired, actual int) clusterv1.Condition {
	return condition.False(clusterv1.ResizedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.ScalingUpV1Beta1Reason,
		"Scaling up MachineSet to %d replicas (actual %d)", desired, actual)
}
