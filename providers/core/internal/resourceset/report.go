package resourceset

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/binding"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// maxNamed is the maximum number of Clusters, ConfigMaps and Secrets in a message.
	maxNamed = 3
	// maxReason is the maximum size of what is reported of one Cluster, in bytes.
	maxReason = 500
)

// report sets the condition. It is one for all Clusters, so that its reason is the first in this order: what a user must change in the
// ClusterResourceSet, clusters without a connection, and manifests that could not be applied. The message has all of them.
func (c *Controller) report(_ context.Context, s *scope) (step.Result, error) {
	sum := c.summarize(s)
	problem := func(severity clusterv1.ConditionSeverity, reason string) step.Result {
		return step.Done().WithConditions(condition.False(addonsv1.ResourcesAppliedV1Beta1Condition, severity, reason, "%s",
			strings.Join(sum.messages(s), "; ")))
	}
	switch {
	case s.invalid != nil:
		return problem(clusterv1.ConditionSeverityWarning, addonsv1.ClusterMatchFailedV1Beta1Reason), step.Terminal(s.invalid)
	case len(s.wrong) > 0:
		return problem(clusterv1.ConditionSeverityWarning, addonsv1.WrongSecretTypeV1Beta1Reason), step.Terminal(errors.New(listed(s.wrong)))
	case len(s.missing) > 0:
		return problem(clusterv1.ConditionSeverityWarning, addonsv1.RetrievingResourceFailedV1Beta1Reason), nil
	case len(sum.unreachable) > 0:
		return problem(clusterv1.ConditionSeverityError, addonsv1.RemoteClusterClientFailedV1Beta1Reason), nil
	case len(sum.failed) > 0:
		return problem(clusterv1.ConditionSeverityWarning, addonsv1.ApplyFailedV1Beta1Reason), nil
	case sum.unknown || sum.pending && !condition.Has(s.set, addonsv1.ResourcesAppliedV1Beta1Condition):
		return step.Done().KeepCondition(), nil
	case len(s.targets) == 0 && !condition.Has(s.set, addonsv1.ResourcesAppliedV1Beta1Condition):
		return step.Done().KeepCondition(), nil // Nothing has been applied.
	}
	return step.Done(), nil
}

// summary is what could not be applied to which Clusters.
type summary struct {
	// unreachable and failed are "<Cluster>: <why>".
	unreachable, failed []string
	// pending is set if manifests are not yet applied to a Cluster, and unknown if a failure is recorded whose reason this process has
	// not seen: after a restart.
	pending, unknown bool
}

// summarize evaluates the bindings and Outcomes of all targets.
func (c *Controller) summarize(s *scope) summary {
	var sum summary
	for _, t := range s.targets {
		applied, failed := true, false
		for _, ref := range s.usable {
			record := binding.RecordOf(t.binding, s.set.Name, ref)
			applied = applied && record != nil && ptr.Deref(record.Applied, false)
			failed = failed || record != nil && !ptr.Deref(record.Applied, false)
		}
		if applied {
			continue
		}
		last, known := c.ledger.Of(client.ObjectKeyFromObject(t.cluster), s.set.Name)
		why := reasons(s, last)
		switch {
		case last.Unreachable != "":
			sum.unreachable = append(sum.unreachable, t.cluster.Name+": "+last.Unreachable)
		case failed && why != "":
			sum.failed = append(sum.failed, t.cluster.Name+": "+why)
		case failed && !known:
			sum.unknown = true
		default:
			sum.pending = true
		}
	}
	return sum
}

// reasons returns the problems of a Cluster, in the order of the ClusterResourceSet.
func reasons(s *scope, last outcome.Outcome) string {
	var out []string
	for _, ref := range s.usable {
		if f, failed := last.Failures[ref]; failed {
			out = append(out, fmt.Sprintf("%s %s, %s", ref.Kind, ref.Name, strings.Join(f.Problems, ", ")))
		}
	}
	return condition.Truncate(strings.Join(out, "; "), maxReason)
}

// messages returns the parts of the condition's message.
func (sum summary) messages(s *scope) []string {
	var out []string
	if s.invalid != nil {
		out = append(out, s.invalid.Error())
	}
	for _, part := range [][]string{s.wrong, s.missing} {
		if len(part) > 0 {
			out = append(out, listed(part))
		}
	}
	if n := len(sum.unreachable); n > 0 {
		out = append(out, fmt.Sprintf("cannot connect to %s: %s", clusters(n), listed(sum.unreachable)))
	}
	if n := len(sum.failed); n > 0 {
		out = append(out, fmt.Sprintf("cannot apply to %s: %s", clusters(n), listed(sum.failed)))
	}
	return out
}

func clusters(n int) string {
	if n == 1 {
		return "1 Cluster"
	}
	return fmt.Sprintf("%d Clusters", n)
}

// listed returns the first few of a list.
func listed(all []string) string {
	if n := len(all) - maxNamed; n > 0 {
		return fmt.Sprintf("%s, and %d more", strings.Join(all[:maxNamed], ", "), n)
	}
	return strings.Join(all, ", ")
}
