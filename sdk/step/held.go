package step

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// heldFor is how long a status write that only changes metav1 conditions is held back at most: they are written with the next write that
// code waits for. Most of these changes are followed by one within moments.
const heldFor = 10 * time.Second

const (
	// heldEach is added to heldFor for each object whose write is held back, up to heldMost: so a controller of many objects that change at
	// the same time, such as those of a fleet that is being created, sends two such writes per second.
	heldEach = 500 * time.Millisecond
	heldMost = time.Minute
	// progressMost is the same limit for progressDelay.
	progressMost = heldFor
)

// held remembers, per object, since when a write is held back. After a restart, the time begins anew.
type held struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// left returns how long a write may still be held back, for at most the given time, or longer if that is heldFor and many are. It begins
// with the first call after forget.
func (h *held) left(key types.NamespacedName, now time.Time, most time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since == nil {
		h.since = map[types.NamespacedName]time.Time{}
	}
	if _, known := h.since[key]; !known {
		h.since[key] = now
	}
	if most == heldFor {
		most = min(heldFor+time.Duration(len(h.since)-1)*heldEach, heldMost)
	}
	return max(0, h.since[key].Add(most).Sub(now))
}

// progress returns how long a write of Progress is delayed.
func (h *held) progress() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return min(progressDelay+time.Duration(len(h.since))*heldEach, progressMost)
}

func (h *held) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.since, key)
}

// Settle declares that what a controller reports changes often, and that no code waits for it: one write reports changes
// that come at about the same time.
type Settle struct {
	// For is how long a write is held back that changes one of Conditions to or from True. Zero: nothing settles.
	For time.Duration
	// Conditions are those that users wait for. Writes of all other conditions and counters are held back for up to ten seconds.
	Conditions []string
	// First: the first reports of the controller about an object, and observedGeneration, are held back until one of Conditions, Available or
	// Ready is True, or for ten seconds. While objects start one after another, each of their writes would carry a long list of conditions.
	First bool
}

// heldBack returns how long a patch may be held back at most: heldFor if it changes only metav1 conditions, and none of them becomes
// True or is no longer True. If they settle, only some conditions count, counters may change, too, and nothing is urgent in deletion.
func heldBack(patch statusPatch, before, after reported, settle Settle) time.Duration {
	for field := range patch.document {
		if field != "status" {
			return 0
		}
	}
	if !patch.changesReports() || patch.changesConditions() || len(patch.values(false)) > 0 {
		return 0
	}
	settled := settle.For > 0 && (after.GetDeletionTimestamp() != nil || sameTrue(before, after, settle.Conditions...))
	if settled || onlyRewordsReports(patch, before, after) {
		return heldFor
	}
	return settle.For
}

// onlyRewordsReports reports whether a patch changes nothing of what is for people except conditions that are True neither before nor
// after, or in both.
func onlyRewordsReports(patch statusPatch, before, after any) bool {
	for field := range patch.status() {
		if field != "conditions" && patch.isReport(field) {
			return false
		}
	}
	was, isGetter := before.(report.Getter)
	is, ok := after.(report.Getter)
	return ok && isGetter && sameTrue(was, is)
}

// reported is an object with metav1 conditions.
type reported interface {
	metav1.Object
	report.Getter
}

// sameTrue reports whether none of these conditions becomes True or is no longer True. No types: all conditions count.
func sameTrue(was, is report.Getter, types ...string) bool {
	if len(types) > 0 {
		return !slices.ContainsFunc(types, func(t string) bool { return report.IsTrue(was, t) != report.IsTrue(is, t) })
	}
	for _, c := range is.GetConditions() {
		if (c.Status == metav1.ConditionTrue) != report.IsTrue(was, c.Type) {
			return false
		}
	}
	for _, c := range was.GetConditions() {
		if c.Status == metav1.ConditionTrue && report.Get(is, c.Type) == nil {
			return false
		}
	}
	return true
}

// pausedReport returns the condition Paused of an object that is reconciled, or of one that is not.
func pausedReport(obj client.Object, byCluster, byAnnotation bool) metav1.Condition {
	var why []string
	if byCluster {
		why = append(why, "Cluster spec.paused is set to true")
	}
	if byAnnotation {
		why = append(why, fmt.Sprintf("%s has the cluster.x-k8s.io/paused annotation", kindOf(obj)))
	}
	if len(why) == 0 {
		return report.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")
	}
	return report.True(clusterv1.PausedCondition, clusterv1.PausedReason, "%s", strings.Join(why, ", "))
}
