package machine

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// unreachableLimit is how long deletion waits for an unreachable workload cluster before it skips the drain and the wait for
// volumes, unless the Machine sets a timeout.
const unreachableLimit = 10 * time.Minute

// reach returns the workload cluster, nil if it is unreachable. In that case the result waits until the timeout of the step has
// passed, or unreachableLimit if it has none, and condition t reports why; after that, the result is Done, which skips the step.
// A single failure to connect must not skip a step that protects Pods and data of users.
func (c *Controller) reach(
	ctx context.Context, s *scope, t clusterv1.ConditionType, limit time.Duration,
) (*remote.Cluster, step.Result, error) {
	workload, err := c.workloads.Get(ctx, s.key())
	if err == nil || !remote.IsNotConnected(err) {
		return workload, step.Done(), err
	}
	m := s.machine
	left := c.unreachableLeft(m, t, limit, err)
	if left <= 0 {
		c.giveUp(ctx, m, t)
		return nil, step.Done(), nil
	}
	if c.stillConnecting(err) {
		// After a restart no cluster is connected yet: do not write the condition for that.
		return nil, step.WaitAtMost(min(left, connectingBackstop), err.Error()), nil
	}
	state := unreachableCondition(t, err.Error())
	c.begin(m, t, state.Reason, err.Error())
	c.setKeepingTime(m, state)
	return nil, step.WaitAtMost(max(left, time.Second), err.Error()), nil
}

// stillConnecting reports whether the first attempt to connect is still in progress.
func (c *Controller) stillConnecting(err error) bool {
	since, known := remote.DisconnectedSince(err)
	return remote.IsConnecting(err) && (!known || c.Clock.Since(since) < connectingBackstop)
}

// unreachableLeft returns how long to wait for an unreachable cluster from now on.
func (c *Controller) unreachableLeft(m *clusterv1.Machine, t clusterv1.ConditionType, limit time.Duration, err error) time.Duration {
	if limit > 0 {
		if since, begun := began(m, t); begun {
			return limit - c.Clock.Since(since)
		}
		return limit
	}
	since, known := remote.DisconnectedSince(err)
	if !known && m.DeletionTimestamp != nil {
		since, known = m.DeletionTimestamp.Time, true
	}
	if !known {
		return unreachableLimit
	}
	return unreachableLimit - c.Clock.Since(since)
}

// giveUp reports once, in the condition and an event, that a step was skipped.
func (c *Controller) giveUp(ctx context.Context, m *clusterv1.Machine, t clusterv1.ConditionType) {
	message := fmt.Sprintf("Skipped: the workload cluster could not be reached for %s", unreachableLimit)
	if before := condition.Get(m, t); before != nil && before.Message == message {
		return
	}
	condition.Set(m, unreachableCondition(t, message))
	reason := "FailedDrainNode"
	if t == clusterv1.VolumeDetachSucceededV1Beta1Condition {
		reason = "FailedWaitForVolumeDetach"
	}
	step.Warning(ctx, reason, "%s", message)
}

func unreachableCondition(t clusterv1.ConditionType, message string) clusterv1.Condition {
	if t == clusterv1.VolumeDetachSucceededV1Beta1Condition {
		return condition.False(t, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForVolumeDetachV1Beta1Reason, "%s", message)
	}
	return condition.False(t, clusterv1.ConditionSeverityWarning, clusterv1.DrainingFailedV1Beta1Reason, "%s", message)
}
