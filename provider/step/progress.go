package step

import (
	"slices"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
	"sigs.k8s.io/cluster-api/provider/step/internal/conditionlist"
)

// settleTime bounds how long progress waits. The times that it is measured from are whole seconds, so the wait is one to
// two seconds.
const settleTime = 2 * time.Second

// Progress lets a Runner postpone two kinds of status writes, which are likely to be overtaken within moments:
//
//   - The first status of a new object, while it says only that the object waits for something. Until it is written, the
//     object is one that has not been observed yet: its observedGeneration says so.
//   - Another reason, message or severity of conditions whose status does not change, of objects that have a status. Only
//     people read those.
//
// Nothing that code reads waits once an object has a status: fields, conditions that become True, False or Unknown, and
// errors are written at once, and so is what a failed reconcile states and what concerns an object that is being deleted.
//
// The wait is measured from times in the object itself, its creation or the last transition of the conditions, and the
// write is postponed by running the reconcile again. A Runner remembers nothing for it: each reconcile states everything
// anew from what it reads.
type Progress struct {
	// First are the fields that the first status may hold and still wait, besides observedGeneration.
	First []string
	// FirstTrue are the conditions that may be True in the first status and let it wait. Ready follows those that feed it.
	FirstTrue []clusterv1.ConditionType
}

// wait says how long a status patch may be postponed; zero means not at all. before is the object as it was read.
func (p *Progress) wait(patch document, before, after Object, now time.Time) time.Duration {
	since, ok := p.since(patch, before, after)
	if !ok || now.Before(since) { // a clock that is ahead of ours tells nothing
		return 0
	}
	return max(0, since.Add(settleTime).Sub(now))
}

// since is when the wait of a patch began, if it may wait.
func (p *Progress) since(patch document, before, after Object) (time.Time, bool) {
	if len(before.GetConditions()) == 0 {
		return before.GetCreationTimestamp().Time, p.isFirst(patch, before, after)
	}
	return restated(patch, before, after)
}

// isFirst reports whether a first status says only that the object waits.
func (p *Progress) isFirst(patch document, before, after Object) bool {
	for field := range patch.status() {
		if field != "conditions" && field != "observedGeneration" && !slices.Contains(p.First, field) {
			return false
		}
	}
	for _, c := range after.GetConditions() {
		arrived := c.Type == clusterv1.ReadyCondition || slices.Contains(p.FirstTrue, c.Type)
		if !conditionlist.StillWaiting(before.GetConditions(), after.GetConditions(), c.Type, arrived) {
			return false
		}
	}
	return true
}

// restated reports whether a patch only restates conditions, and when the newest of those was written.
func restated(patch document, before, after Object) (time.Time, bool) {
	var newest time.Time
	for field := range patch.status() {
		if field != "conditions" {
			return newest, false
		}
	}
	for _, t := range conditionlist.Changed(before.GetConditions(), after.GetConditions()) {
		was, is := condition.Get(before, t), condition.Get(after, t)
		if was == nil || is == nil || !conditionlist.SameStatus(*was, *is) {
			return newest, false
		}
		if was.LastTransitionTime.After(newest) {
			newest = was.LastTransitionTime.Time
		}
	}
	return newest, true
}
