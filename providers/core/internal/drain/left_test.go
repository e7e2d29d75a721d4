package drain

import (
	"slices"
	"testing"
	"time"
)

// TestReports lists what is said about the Pods that are left.
func TestReports(t *testing.T) {
	const budgetReason = "its disruption budget does not allow it: The disruption budget db needs 2 healthy pods and has 2 currently"
	budget := func(pod string) Rejection { return Rejection{pod, true, budgetReason} }
	for name, tc := range map[string]struct {
		reason  string
		left    Left
		message string
		lines   string
		causes  []string
		delay   time.Duration
	}{
		"Leaving": {"terminating Pods are neither listed nor counted: what is said would change with each of them", Left{Leaving: 3},
			"Draining the node before deletion", "* Pods are terminating", nil, 2 * time.Second},
		"Budget": {"the disruption budget is named", Left{Rejected: []Rejection{budget("a/db-0"), budget("a/db-1")}},
			"Draining the node before deletion; cannot be evicted: Pod a/db-0 (" + budgetReason + "), Pod a/db-1 (" + budgetReason + ")",
			"* Pods a/db-0, a/db-1: cannot be evicted: " + budgetReason, []string{"PodDisruptionBudgets"}, 5 * time.Second},
		"Rejected": {"at most five are listed", Left{Rejected: []Rejection{{"a", false, "no"}, {"b", false, "no"}, {"c", false, "no"}, {"d", false, "no"}, {"e", false, "no"}, {"f", false, "no"}}},
			"Draining the node before deletion; cannot be evicted: Pod a (no), Pod b (no), Pod c (no), Pod d (no), Pod e (no), ...",
			"* Pods a, b, c, ... (3 more): cannot be evicted: no", []string{"Pod eviction errors"}, 5 * time.Second},
		"Everything": {"disruption budgets come before other rejections",
			Left{Leaving: 1, Stuck: []string{"a/s"}, Rejected: []Rejection{{"a/a", false, "no"}, budget("a/b")}, Running: []string{"a/j", "a/k"}, Later: []string{"a/l"}},
			"Draining the node before deletion; cannot be evicted: Pod a/a (no), Pod a/b (" + budgetReason + "); do not terminate: Pod a/s; have not completed: Pods a/j, a/k",
			"* Pod a/s: deletionTimestamp set, but still not removed from the Node\n* Pod a/b: cannot be evicted: " + budgetReason + "\n* Pod a/a: cannot be evicted: no\n" +
				"* Pods a/j, a/k: waiting for completion\nAfter above Pods have been removed from the Node, the following Pods will be evicted: a/l",
			[]string{"PodDisruptionBudgets", "Pods not terminating", "Pod eviction errors", "Pods not completed yet"}, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.left.Message(); got != tc.message {
				t.Errorf("%s: message %q, want %q", tc.reason, got, tc.message)
			}
			if got := tc.left.Lines(); got != tc.lines {
				t.Errorf("%s: lines\n%s\nwant\n%s", tc.reason, got, tc.lines)
			}
			if got := tc.left.Causes(); !slices.Equal(got, tc.causes) {
				t.Errorf("%s: causes %q, want %q", tc.reason, got, tc.causes)
			}
			if got := tc.left.Delay(); got != tc.delay {
				t.Errorf("%s: delay %s, want %s", tc.reason, got, tc.delay)
			}
		})
	}
}
