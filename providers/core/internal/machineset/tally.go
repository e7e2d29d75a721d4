package machineset

import (
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// Tally holds numbers of Machines of a MachineSet. Machines that are being deleted count only in Deleting. The controller of
// MachineDeployments counts, too, with Machines from the cache or from the API server: the counters of a status may be outdated.
type Tally struct {
	Replicas, Ready, Available int32
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
	remaining := untilAvailable(m, minReady, now)
	if remaining <= 0 {
		t.Available++
	} else if t.NextAvailable == 0 || remaining < t.NextAvailable {
		t.NextAvailable = remaining
	}
}

// isReady reports whether a Machine's Node is healthy, according to the Machine's conditions. One that is updated in place is not ready.
func isReady(m *clusterv1.Machine) bool {
	return m.Status.NodeRef.IsDefined() && !inplace.IsUpdating(m) && condition.IsTrue(m, clusterv1.MachineNodeHealthyV1Beta1Condition)
}

func untilAvailable(m *clusterv1.Machine, minReady time.Duration, now time.Time) time.Duration {
	if minReady <= 0 {
		return 0
	}
	since := condition.Get(m, clusterv1.MachineNodeHealthyV1Beta1Condition).LastTransitionTime.Time
	return since.Add(minReady).Sub(now)
}

// MinReady returns how long a Machine of a MachineSet must be ready before it is available.
func MinReady(set *clusterv1.MachineSet) time.Duration {
	return time.Duration(ptr.Deref(set.Spec.Template.Spec.MinReadySeconds, 0)) * time.Second
}
