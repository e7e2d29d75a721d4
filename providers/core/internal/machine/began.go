package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// began returns when a step of the deletion began, whose progress is in a condition: timeouts count from then. It is status.deletion, as
// v1.14 reads it, or else the time of the condition: definitions of v1.7 do not have the field.
func began(m *clusterv1.Machine, t clusterv1.ConditionType) (since time.Time, begun bool) {
	if at := startOf(m, t); at != nil && !at.IsZero() {
		return at.Time, true
	}
	if c := condition.Get(m, t); c != nil {
		return c.LastTransitionTime.Time, true
	}
	return time.Time{}, false
}

// record sets when a step began in status.deletion, unless it is set. It is called only when the condition changes: where the definition
// does not have the field, each reconcile would write it again.
func record(m *clusterv1.Machine, t clusterv1.ConditionType, now metav1.Time) {
	if m.Status.Deletion == nil {
		m.Status.Deletion = &clusterv1.MachineDeletionStatus{}
	}
	if at := startOf(m, t); at != nil && at.IsZero() {
		*at = now
	}
}

// startOf returns the time of a step in status.deletion; nil if there is none.
func startOf(m *clusterv1.Machine, t clusterv1.ConditionType) *metav1.Time {
	switch {
	case m.Status.Deletion == nil:
		return nil
	case t == clusterv1.DrainingSucceededV1Beta1Condition:
		return &m.Status.Deletion.NodeDrainStartTime
	case t == clusterv1.VolumeDetachSucceededV1Beta1Condition:
		return &m.Status.Deletion.WaitForNodeVolumeDetachStartTime
	case t == clusterv1.PreDrainDeleteHookSucceededV1Beta1Condition:
		return &m.Status.Deletion.WaitForPreDrainHookStartTime
	case t == clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition:
		return &m.Status.Deletion.WaitForPreTerminateHookStartTime
	}
	return nil
}
