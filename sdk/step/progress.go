package step

import (
	"slices"
	"strings"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// progressDelay is how long a write is delayed at most, unless many objects are held back. It is measured from timestamps in whole seconds,
// so the delay is one to two seconds.
const progressDelay = 2 * time.Second

// Progress delays two kinds of status writes, which are likely to be superseded within moments:
//
//   - The first status of a new object, while it only reports that the object waits for something. Until it is written, the
//     object has no observedGeneration.
//   - Changes of the reason, message or severity of conditions whose status does not change, of objects that have a status. Only
//     users read these. With OnlyFirst, they are written immediately.
//
// Everything that controllers read is written immediately: fields, conditions that become True, False or Unknown, severity
// Error, the status of a failed reconcile, and that of an object that is being deleted.
//
// The delay is measured from timestamps in the object, its creation or the last transition of the conditions, and the object is
// requeued for the write. The Runner keeps no state for it: each reconcile computes the status anew. While the controller holds back the
// reports of many objects, the delay is longer, up to ten seconds.
type Progress struct {
	// First are the fields of the status and of status.deprecated.v1beta1 that may be set in a first status that is delayed, besides
	// observedGeneration and counters that are 0. Those of status.initialization have a path, such as initialization.provisioned.
	First []string
	// FirstTrue are the conditions that may be True in a first status that is delayed. Ready may be, too.
	FirstTrue []clusterv1.ConditionType
	// OnlyFirst delays only the first status: for objects whose conditions change seldom.
	OnlyFirst bool
	// Immediate are the reasons of conditions that are written immediately, because code reads them.
	Immediate []string
}

// wait returns how long a status patch may be delayed, for at most the given time; zero if it may not. before is the object as it was read.
func (p *Progress) wait(patch statusPatch, before, after Object, now time.Time, most time.Duration) time.Duration {
	since, ok := p.since(patch, before, after)
	for _, c := range after.GetV1Beta1Conditions() {
		ok = ok && !slices.Contains(p.Immediate, c.Reason)
	}
	if !ok || now.Before(since) { // The clocks differ, so the delay is unknown.
		return 0
	}
	return max(0, since.Add(most).Sub(now))
}

// since returns when the delay of a patch began, if it may be delayed.
func (p *Progress) since(patch statusPatch, before, after Object) (time.Time, bool) {
	if len(before.GetV1Beta1Conditions()) == 0 {
		return before.GetCreationTimestamp().Time, p.isFirst(patch, before, after)
	}
	if p.OnlyFirst {
		return time.Time{}, false
	}
	return isRewording(patch, before, after)
}

// isFirst reports whether a first status only reports that the object waits.
func (p *Progress) isFirst(patch statusPatch, before, after Object) bool {
	for path, value := range patch.values(false) {
		isZero := value == int64(0)
		if path != "observedGeneration" && !isZero && !slices.Contains(p.First, strings.TrimPrefix(path, olderPath)) {
			return false
		}
	}
	for _, c := range after.GetV1Beta1Conditions() {
		arrived := c.Type == clusterv1.ReadyV1Beta1Condition || slices.Contains(p.FirstTrue, c.Type)
		if !stillWaiting(before.GetV1Beta1Conditions(), after.GetV1Beta1Conditions(), c.Type, arrived) {
			return false
		}
	}
	return true
}

// isRewording reports whether a patch only changes the wording of conditions, and the last transition of these conditions.
func isRewording(patch statusPatch, before, after Object) (time.Time, bool) {
	var newest time.Time
	if len(patch.values(false)) > 0 || patch.changesReports() && !onlyRewordsReports(patch, before, after) {
		return newest, false
	}
	for _, t := range changedConditions(before.GetV1Beta1Conditions(), after.GetV1Beta1Conditions()) {
		was, is := condition.Get(before, t), condition.Get(after, t)
		if was == nil || is == nil || !sameStatus(*was, *is) {
			return newest, false
		}
		if was.LastTransitionTime.After(newest) {
			newest = was.LastTransitionTime.Time
		}
	}
	return newest, true
}
