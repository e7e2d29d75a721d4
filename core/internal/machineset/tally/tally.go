// Package tally counts Machines: how many there are of a MachineSet, and how many of them are ready and available. The
// controllers of MachineSets and of MachineDeployments count in the same way, each on the view that it decides on, a cache
// or the API server; a status that somebody wrote earlier is no such view.
package tally

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Tally is how many Machines there are. Machines that are being deleted count in Leaving alone.
type Tally struct {
	Replicas, Ready, Available int32
	// Leaving are Machines that are being deleted.
	Leaving int32
	// Soonest is how long until the next ready Machine becomes available; zero if there is none to wait for.
	Soonest time.Duration
}

// Add counts one more Machine, which is available when it has been ready for minReady.
func (t *Tally) Add(m *clusterv1.Machine, minReady time.Duration, now time.Time) {
	if !m.DeletionTimestamp.IsZero() {
		t.Leaving++
		return
	}
	t.Replicas++
	if !IsReady(m) {
		return
	}
	t.Ready++
	remaining := untilAvailable(m, minReady, now)
	if remaining <= 0 {
		t.Available++
	} else if t.Soonest == 0 || remaining < t.Soonest {
		t.Soonest = remaining
	}
}

// IsReady is whether a Machine's Node is: the Machine controller mirrors its health.
func IsReady(m *clusterv1.Machine) bool {
	return m.Status.NodeRef != nil && condition.IsTrue(m, clusterv1.MachineNodeHealthyCondition)
}

func untilAvailable(m *clusterv1.Machine, minReady time.Duration, now time.Time) time.Duration {
	if minReady <= 0 {
		return 0
	}
	since := condition.Get(m, clusterv1.MachineNodeHealthyCondition).LastTransitionTime.Time
	return since.Add(minReady).Sub(now)
}

// MinReady is how long a Machine of a MachineSet has to be ready until it is available.
func MinReady(set *clusterv1.MachineSet) time.Duration {
	return time.Duration(set.Spec.MinReadySeconds) * time.Second
}
