package invariant

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// Run is the record of a run.
type Run struct {
	// Scenario is the operation on the Cluster.
	Scenario scenario.Scenario
	// Before is what happened until the change, Timeline what happened from then on, until the run was complete.
	Before, Timeline history.Timeline
	// Samples are the responses of etcd members, in order.
	Samples []members.Sample
	// Unwatched is set if etcd members were not queried.
	Unwatched bool
	// Baseline is the shape of the final state without faults. Nil: this is the baseline run.
	Baseline []string
}

// Violation is a violated rule.
type Violation struct {
	// Rule is the name of the rule.
	Rule string
	// Detail describes the violation.
	Detail string
	// Revision is the resource version of the violating change, or 0.
	Revision uint64
}

// String returns a line for the report.
func (v Violation) String() string {
	if v.Revision == 0 {
		return v.Rule + ": " + v.Detail
	}
	return fmt.Sprintf("%s: %s (at resource version %d)", v.Rule, v.Detail, v.Revision)
}

// Rule is an invariant.
type Rule struct {
	// Name is its statement.
	Name string
	// check returns the violations.
	check func(Run) []Violation
}

// Rules returns all rules.
func Rules() []Rule {
	return []Rule{
		{"never more Machines than replicas and surge", notTooMany},
		{"never fewer available Machines than the strategy allows", enoughAvailable},
		{"nothing is created twice", nothingCreatedTwice},
		{"no Machine with power is remediated", onlyDeadRemediated},
		{"no Machine is remediated while its cluster does not respond", nothingRemediatedBlindly},
		{"no Machine is remediated while too many Clusters are unhealthy", heldByBrake},
		{"nothing is deleted before its dependents", nothingOrphaned},
		{"there is only one etcd cluster", oneEtcdCluster},
		{"only one Machine initializes the cluster", oneInit},
		{"no machine is deleted before its etcd member is removed", membersRemovedFirst},
		{"etcd always has a quorum", alwaysQuorum},
		{"finally, etcd has one member for each control plane Machine", finalMembers},
		{"no address is allocated to two claims", addressesOnce},
		{"nothing happens before its lifecycle hook has released it", heldByHooks},
		{"no lifecycle hook is called before its time", hooksInTime},
		{"without faults, hooks that cannot block are called once", hooksOnce},
		{"nothing changes while an extension of patches is away, contradicts itself or rejects the topology", heldByPatches},
		{"templates have only patches that were confirmed", onlyConfirmedPatches},
		{"an extension has updated a Machine as desired when its update in place ends", updatedAsDesired},
		{"one control plane Machine is updated in place or deleted at a time", oneUpdatesInPlace},
		{"workers have one owner, and enough of them are not being updated in place", workersUpdateInPlace},
		{"no object of a provider is created twice", installedOnce},
		{"no definition, Namespace or object of a user is deleted", nothingOfUsersDeleted},
		{"a provider that a Cluster needs is not deleted", neededStays},
		{"webhooks always have a Service and an available Deployment", alwaysServed},
		{"no Deployment is changed more often than required", fewSpecs},
		{"finally, inventory and Deployments have the same versions, and no journal is left", sameVersions},
		{"no confidential content in Events, statuses and annotations", noConfidentialContent},
		{"the final state is that of the baseline run", sameFinalState},
	}
}

// Check returns the violations of all rules.
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

// play calls see for each event after the change, with the state, until the first violation.
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

// duringRun is the number of rules that package campaign checks: the Cluster converges, nothing is left after deletion,
// nothing is written when idle, no confidential content in logs, no manager exits by itself, webhooks always respond.
const duringRun = 6

// Count returns the number of rules that are checked in each run.
func Count() int { return len(Rules()) + duringRun }
