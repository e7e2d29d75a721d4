package machine

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/remote"
	"sigs.k8s.io/cluster-api/provider/step"
)

// unreachableLimit is how long deletion waits for a workload cluster that cannot be reached before it goes on without
// draining and without waiting for volumes, if the Machine has no timeout of its own for that.
const unreachableLimit = 10 * time.Minute

// reach is the workload cluster; nil if it cannot be reached. The result is then to wait until the step's limit has
// passed, or unreachableLimit if it has none, and condition t says so; after that, that there is nothing to do there. A
// single failure to connect is no reason to skip work that protects users' Pods and data.
func (c *Controller) reach(ctx context.Context, s *scope, t clusterv1.ConditionType, limit *metav1.Duration) (*remote.Cluster, step.Result, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	if err == nil || !remote.IsNotConnected(err) {
		return workload, step.Done(), err
	}
	m := s.machine
	left := c.awayLeft(m, t, limit, err)
	if left <= 0 {
		c.giveUp(ctx, m, t)
		return nil, step.Done(), nil
	}
	if c.justTrying(err) {
		// After a restart no cluster is connected: that is not worth a write.
		return nil, step.WaitAtMost(min(left, connectingBackstop), err.Error()), nil
	}
	why := unreachableState(t, err.Error())
	c.begin(m, t, why.Reason, err.Error())
	c.notDrained(m, why)
	return nil, step.WaitAtMost(max(left, time.Second), err.Error()), nil
}

// justTrying is whether a connection is being made and nothing is wrong yet.
func (c *Controller) justTrying(err error) bool {
	since, known := remote.AwaySince(err)
	return remote.IsConnecting(err) && (!known || c.Clock.Since(since) < connectingBackstop)
}

// awayLeft is for how long a cluster that cannot be reached is still waited for.
func (c *Controller) awayLeft(m *clusterv1.Machine, t clusterv1.ConditionType, limit *metav1.Duration, err error) time.Duration {
	if limit != nil && limit.Duration > 0 {
		if begun := condition.Get(m, t); begun != nil {
			return limit.Duration - c.Clock.Since(begun.LastTransitionTime.Time)
		}
		return limit.Duration
	}
	since, known := remote.AwaySince(err)
	if !known && m.DeletionTimestamp != nil {
		since, known = m.DeletionTimestamp.Time, true
	}
	if !known {
		return unreachableLimit
	}
	return unreachableLimit - c.Clock.Since(since)
}

// giveUp states, once, that a step was skipped.
func (c *Controller) giveUp(ctx context.Context, m *clusterv1.Machine, t clusterv1.ConditionType) {
	message := fmt.Sprintf("Skipped: the workload cluster could not be reached for %s", unreachableLimit)
	if before := condition.Get(m, t); before != nil && before.Message == message {
		return
	}
	condition.Set(m, unreachableState(t, message))
	reason := "FailedDrainNode"
	if t == clusterv1.VolumeDetachSucceededCondition {
		reason = "FailedWaitForVolumeDetach"
	}
	step.Warning(ctx, reason, "%s", message)
}

func unreachableState(t clusterv1.ConditionType, message string) clusterv1.Condition {
	if t == clusterv1.VolumeDetachSucceededCondition {
		return condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachReason, "%s", message)
	}
	return condition.False(t, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedReason, "%s", message)
}
