package drain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/sdk/report"
)

const (
	// rejectedRetry is the delay while evictions are rejected. A disruption budget that permits them triggers no event.
	rejectedRetry = 5 * time.Second
	// leavingRetry is the delay while Pods terminate, or complete. Pods are not watched: there are too many of them.
	leavingRetry = 2 * time.Second
	// maxRejected is the maximum number of Pods with a rejected eviction that Message lists.
	maxRejected = 5
	draining    = "Draining the node before deletion"
)

// Left are the Pods that are still on a Node after an attempt to drain it, without those that stay there. Pods are named as
// "namespace/name", and lists are sorted.
type Left struct {
	// Leaving is the number of Pods that were evicted, and have time to terminate.
	Leaving int
	// Stuck have not terminated in time.
	Stuck []string
	// Rejected are those whose evictions were rejected.
	Rejected []Rejection
	// Running are waited for until they complete.
	Running []string
	// Later are evicted when all others are gone.
	Later []string
}

// Rejection is a rejected eviction.
type Rejection struct {
	Pod string
	// Budget is whether it was rejected by a disruption budget, which Reason names.
	Budget bool
	// Reason does not vary between attempts unless what rejects the eviction changes.
	Reason string
}

// Pods is the number of Pods.
func (l Left) Pods() int {
	return l.Leaving + len(l.Stuck) + len(l.Rejected) + len(l.Running) + len(l.Later)
}

// Delay is the time until the next attempt.
func (l Left) Delay() time.Duration {
	if len(l.Rejected) > 0 {
		return rejectedRetry
	}
	return leavingRetry
}

// Message says in one line what happens. It does not count Pods that terminate in time: it would change with each of them.
func (l Left) Message() string {
	var parts []string
	if len(l.Rejected) > 0 {
		var rejected []string
		for _, r := range l.Rejected[:min(len(l.Rejected), maxRejected)] {
			rejected = append(rejected, "Pod "+r.Pod+" ("+r.Reason+")")
		}
		if len(l.Rejected) > maxRejected {
			rejected = append(rejected, "...")
		}
		parts = append(parts, "cannot be evicted: "+strings.Join(rejected, ", "))
	}
	if len(l.Stuck) > 0 {
		parts = append(parts, "do not terminate: "+pods(l.Stuck))
	}
	if len(l.Running) > 0 {
		parts = append(parts, "have not completed: "+pods(l.Running))
	}
	return strings.Join(append([]string{draining}, parts...), "; ")
}

// Lines says the same in a list, and which Pods are evicted later.
func (l Left) Lines() string {
	var lines []string
	if len(l.Stuck) > 0 {
		lines = append(lines, "* "+pods(l.Stuck)+": deletionTimestamp set, but still not removed from the Node")
	}
	for _, reason := range l.reasons() {
		var names []string
		for _, r := range l.Rejected {
			if r.Reason == reason {
				names = append(names, r.Pod)
			}
		}
		lines = append(lines, "* "+pods(names)+": cannot be evicted: "+reason)
	}
	if len(l.Running) > 0 {
		lines = append(lines, "* "+pods(l.Running)+": waiting for completion")
	}
	if len(lines) == 0 {
		lines = append(lines, "* Pods are terminating")
	}
	if len(l.Later) > 0 {
		lines = append(lines, "After above Pods have been removed from the Node, the following Pods will be evicted: "+report.Names(l.Later))
	}
	return strings.Join(lines, "\n")
}

// reasons returns the different reasons of rejections, disruption budgets first.
func (l Left) reasons() []string {
	sorted := slices.SortedStableFunc(slices.Values(l.Rejected), func(a, b Rejection) int {
		if a.Budget != b.Budget {
			if a.Budget {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Reason, b.Reason)
	})
	var reasons []string
	for _, r := range sorted {
		if !slices.Contains(reasons, r.Reason) {
			reasons = append(reasons, r.Reason)
		}
	}
	return reasons
}

// Causes says in a few words what takes a long time.
func (l Left) Causes() []string {
	var causes []string
	add := func(is bool, cause string) {
		if is {
			causes = append(causes, cause)
		}
	}
	add(slices.ContainsFunc(l.Rejected, func(r Rejection) bool { return r.Budget }), "PodDisruptionBudgets")
	add(len(l.Stuck) > 0, "Pods not terminating")
	add(slices.ContainsFunc(l.Rejected, func(r Rejection) bool { return !r.Budget }), "Pod eviction errors")
	add(len(l.Running) > 0, "Pods not completed yet")
	return causes
}

// pods names Pods at the beginning of a sentence.
func pods(names []string) string {
	if len(names) == 1 {
		return "Pod " + names[0]
	}
	return "Pods " + report.Names(names)
}
