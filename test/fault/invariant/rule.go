package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// Run is what is known of a run.
type Run struct {
	// Scenario is what was done.
	Scenario scenario.Scenario
	// Before is what happened until the change, Timeline what happened from then on, until the run was complete.
	Before, Timeline history.Timeline
	// Samples are what etcd's members said, in order.
	Samples []members.Sample
	// Unwatched says that nobody asked the members.
	Unwatched bool
	// Calm is the shape of the end when nothing goes wrong. Nil: this is the calm run.
	Calm []string
}

// Violation is a broken rule.
type Violation struct {
	// Rule is the name of the rule.
	Rule string
	// Detail says what was found.
	Detail string
	// Revision is the resource version of the change that broke it, or 0.
	Revision uint64
}

// String is a line for people.
func (v Violation) String() string {
	if v.Revision == 0 {
		return v.Rule + ": " + v.Detail
	}
	return fmt.Sprintf("%s: %s (at resource version %d)", v.Rule, v.Detail, v.Revision)
}

// Rule is something that must hold.
type Rule struct {
	// Name is what it demands.
	Name string
	// check returns what breaks it.
	check func(Run) []Violation
}

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		{"never more Machines than asked for", neverMore},
		{"never fewer Machines that serve than promised", neverFewer},
		{"nothing is made twice", nothingTwice},
		{"nothing goes before what depends on it", nothingOrphaned},
		{"there is one etcd cluster ever", oneCluster},
		{"one Machine ever begins the cluster", oneInit},
		{"no machine goes before its member has left etcd", membersLeaveFirst},
		{"etcd always has a quorum", alwaysQuorum},
		{"etcd ends with one member for each control plane Machine", membersInTheEnd},
		{"nothing confidential is told", nothingTold},
		{"the end is that of a calm run", sameEnd},
	}
}

// Check returns what breaks the rules.
func Check(r Run) []Violation {
	var all []Violation
	for _, rule := range Rules() {
		for _, v := range rule.check(r) {
			v.Rule = rule.Name
			all = append(all, v)
		}
	}
	return all
}

// play goes through the change, with the state at its start.
func (r Run) play(see func(e history.Event, now history.State) *Violation) []Violation {
	var found []Violation
	start := len(r.Before)
	all := append(append(history.Timeline{}, r.Before...), r.Timeline...)
	i := 0
	all.Play(func(e history.Event, _ *unstructured.Unstructured, now history.State) bool {
		i++
		if i <= start {
			return true
		}
		if v := see(e, now); v != nil {
			v.Revision = e.Revision
			found = append(found, *v)
			return false
		}
		return true
	})
	return found
}

// watched are the rules that the course of a run itself checks: it gets there, nothing is left over, nothing is written at
// rest, nothing confidential is in logs, managers end only when they are killed.
const watched = 5

// Count is how many rules a run is checked against.
func Count() int { return len(Rules()) + watched }
