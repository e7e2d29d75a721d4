package machineset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// Tally holds numbers of Machines of a MachineSet. Machines that are being deleted count only in Deleting. The controller of
// MachineDeployments counts, too, with Machines from the cache or from the API server: the counters of a status may be outdated.
type Tally struct {
	Replicas, Ready, Available int32
	// Passing is the number of available Machines that also pass their readiness gates. Rollouts wait for these.
	Passing int32
	// Deleting is the number of Machines that are being deleted.
	Deleting int32
	// Moved is the number of Machines that another MachineSet has handed over and that are not acknowledged: they count only here.
	Moved int32
	// Updating is the number of Machines among Replicas that are being updated in place. They are neither ready nor available.
	Updating int32
	// NextAvailable is the time until the next ready Machine becomes available; zero if there is none.
	NextAvailable time.Duration
}

// Add counts a Machine. A Machine is available once it has been ready for minReady.
func (t *Tally) Add(m *clusterv1.Machine, minReady time.Duration, now time.Time) {
	if !m.DeletionTimestamp.IsZero() {
		t.Deleting++
		return
	}
	if inplace.IsMoved(m) {
		t.Moved++
		return
	}
	t.Replicas++
	if inplace.IsUpdating(m) {
		t.Updating++
	}
	if !isReady(m) {
		return
	}
	t.Ready++
	since := condition.Get(m, clusterv1.MachineNodeHealthyV1Beta1Condition).LastTransitionTime.Time
	if t.elapsed(since, minReady, now) {
		t.Available++
	}
	passed, ok := Passes(m)
	if ok && t.elapsed(latest(since, passed), minReady, now) {
		t.Passing++
	}
}

// elapsed reports whether a Machine that is ready since then is available. If it is not yet, NextAvailable is when it is, at the latest.
func (t *Tally) elapsed(since time.Time, minReady time.Duration, now time.Time) bool {
	remaining := since.Add(minReady).Sub(now)
	if minReady <= 0 || remaining <= 0 {
		return true
	}
	if t.NextAvailable == 0 || remaining < t.NextAvailable {
		t.NextAvailable = remaining
	}
	return false
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Passes reports whether all readiness gates of a Machine are healthy, and since when; a condition that is missing is not. It reads the
// conditions of the gates: the condition Ready may follow later.
func Passes(m *clusterv1.Machine) (since time.Time, ok bool) {
	for _, gate := range m.Spec.ReadinessGates {
		healthy := metav1.ConditionTrue
		if gate.Polarity == clusterv1.NegativePolarityCondition {
			healthy = metav1.ConditionFalse
		}
		c := report.Get(m, gate.ConditionType)
		if c == nil || c.Status != healthy {
			return time.Time{}, false
		}
		since = latest(since, c.LastTransitionTime.Time)
	}
	return since, true
}

// isReady reports whether a Machine's Node is healthy, according to the Machine's conditions. One that is updated in place is not ready.
func isReady(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() && !inplace.IsUpdating(m) && condition.IsTrue(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
}

// MinReady returns how long a Machine of a MachineSet must be ready before it is available.
func MinReady(set *clusterv1.MachineSet) time.Duration {
	return time.Duration(ptr.Deref(set.Spec.Template.Spec.MinReadySeconds, 0)) * time.Second
}
