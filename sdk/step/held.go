package step

import (
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
)

// heldFor is how long a status write that only changes metav1 conditions is held back at most: they are written with the next write that
// code waits for. Most of these changes are followed by one within moments.
const heldFor = 10 * time.Second

// held remembers, per object, since when a write is held back. After a restart, the time begins anew.
type held struct {
	mu    sync.Mutex
	since map[types.NamespacedName]time.Time
}

// left returns how long a write may still be held back. The time begins with the first call after forget.
func (h *held) left(key types.NamespacedName, now time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since == nil {
		h.since = map[types.NamespacedName]time.Time{}
	}
	if _, known := h.since[key]; !known {
		h.since[key] = now
	}
	return max(0, h.since[key].Add(heldFor).Sub(now))
}

func (h *held) forget(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.since, key)
}

// isHeld reports whether a patch may be held back: it changes only metav1 conditions, and none of them becomes True or is no longer True.
func isHeld(patch document, before, after report.Getter) bool {
	for field := range patch {
		if field != "status" {
			return false
		}
	}
	for field := range patch.status() {
		if field != reportsField {
			return false
		}
	}
	return onlyRewordsReports(patch, before, after)
}

// onlyRewordsReports reports whether a patch changes nothing in the part for v1beta2 except conditions that are True neither before nor
// after, or in both.
func onlyRewordsReports(patch document, before, after any) bool {
	for field := range patch.reports() {
		if field != "conditions" {
			return false
		}
	}
	was, isGetter := before.(report.Getter)
	is, ok := after.(report.Getter)
	if !ok || !isGetter {
		return false
	}
	for _, c := range is.GetV1Beta2Conditions() {
		if (c.Status == metav1.ConditionTrue) != report.IsTrue(was, c.Type) {
			return false
		}
	}
	for _, c := range was.GetV1Beta2Conditions() {
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
		return report.False(clusterv1beta2.PausedCondition, clusterv1beta2.NotPausedReason, "")
	}
	return report.True(clusterv1beta2.PausedCondition, clusterv1beta2.PausedReason, "%s", strings.Join(why, ", "))
}
