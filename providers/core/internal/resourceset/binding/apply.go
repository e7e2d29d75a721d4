package binding

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/content"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/outcome"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/workload"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// firstRetry and lastRetry are the limits of the backoff after objects could not be applied. Nothing tells us when the reason is
	// gone, and every attempt sends all objects of the ConfigMap or Secret.
	firstRetry = time.Second
	lastRetry  = 10 * time.Minute
	// maxProblems is the maximum number of problems that are kept of a ConfigMap or Secret.
	maxProblems = 5
	// maxEvent is the maximum size of the problems in an event, in bytes. Events with more than 1024 bytes are rejected.
	maxEvent = 500
)

// apply applies the chosen ConfigMaps and Secrets, and remembers the results.
func (c *Controller) apply(ctx context.Context, s *scope) (step.Result, error) {
	session := workload.NewSession(s.workload.Client, c.pause)
	failures := map[*addonsv1.ClusterResourceSet]map[addonsv1.ResourceRef]outcome.Failure{}
	for _, w := range s.work {
		if failures[w.set] == nil {
			last, _ := c.ledger.Of(s.key(), w.set.Name)
			failures[w.set] = others(last.Failures, w.set)
		}
		read, err := c.read(ctx, w)
		if _, missing := errors.AsType[*content.UnavailableError](err); missing {
			continue
		}
		if err != nil {
			s.fail(err)
			continue
		}
		problems, retry := send(ctx, session, w.set, read)
		if ctx.Err() != nil {
			return step.Done(), ctx.Err()
		}
		if session.Silent() {
			break
		}
		s.results[w.set.Name] = append(s.results[w.set.Name], addonsv1.ResourceBinding{
			ResourceRef: w.ref, Hash: read.Hash, LastAppliedTime: c.now(), Applied: ptr.To(len(problems) == 0),
		})
		delete(failures[w.set], w.ref)
		if len(problems) > 0 {
			c.warn(ctx, s, w, read.Hash, problems)
			failures[w.set][w.ref] = c.failure(s, w, read.Hash, problems, retry)
		}
	}
	c.note(s, session, failures)
	return step.Done(), nil
}

// read reads a ConfigMap or Secret. What is applied only once must be the latest version.
func (c *Controller) read(ctx context.Context, w work) (content.Content, error) {
	if w.set.Spec.Strategy == string(addonsv1.ClusterResourceSetStrategyReconcile) {
		return c.contents.Recent(ctx, w.set.Namespace, w.ref)
	}
	return c.contents.Read(ctx, w.set.Namespace, w.ref)
}

// others copies the failures of ConfigMaps and Secrets that are still in a ClusterResourceSet.
func others(failures map[addonsv1.ResourceRef]outcome.Failure, set *addonsv1.ClusterResourceSet) map[addonsv1.ResourceRef]outcome.Failure {
	out := map[addonsv1.ResourceRef]outcome.Failure{}
	for _, ref := range Resources(set) {
		if f, ok := failures[ref]; ok {
			out[ref] = f
		}
	}
	return out
}

// send applies all objects of a ConfigMap or Secret. It returns what is wrong, and whether trying again may help.
func send(
	ctx context.Context, session *workload.Session, set *addonsv1.ClusterResourceSet, read content.Content,
) (problems []string, retry bool) {
	write := session.Once
	if set.Spec.Strategy == string(addonsv1.ClusterResourceSetStrategyReconcile) {
		write = session.Reconcile
	}
	objects, unreadable := manifest.Read(read.Data)
	for _, err := range unreadable {
		problems = append(problems, err.Error())
	}
	for _, o := range objects {
		if err := write(ctx, o); err != nil {
			problems, retry = append(problems, o.Describe()+": "+err.Error()), true
		}
		if session.Silent() || ctx.Err() != nil {
			break
		}
	}
	if n := len(problems); n > maxProblems {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", n-maxProblems))
	}
	return problems, retry
}

// failure returns the Failure of an attempt.
func (c *Controller) failure(s *scope, w work, hash string, problems []string, retry bool) outcome.Failure {
	f := outcome.Failure{Hash: hash, Problems: problems, Tries: 1}
	last, _ := c.ledger.Of(s.key(), w.set.Name)
	if before, ok := last.Failures[w.ref]; ok && before.Hash == hash {
		f.Tries = before.Tries + 1
	}
	if retry {
		f.Next = c.Clock.Now().Add(min(firstRetry<<min(f.Tries-1, 20), lastRetry))
		s.retryAt(f.Next)
	}
	return f
}

// warn sends an event about a failed attempt, unless the previous one failed alike. After a restart, a failure that the binding records
// counts as that of the previous process.
func (c *Controller) warn(ctx context.Context, s *scope, w work, hash string, problems []string) {
	last, known := c.ledger.Of(s.key(), w.set.Name)
	if before, failed := last.Failures[w.ref]; failed && slices.Equal(before.Problems, problems) {
		return
	}
	if record := RecordOf(s.binding, w.set.Name, w.ref); !known && record != nil && !ptr.Deref(record.Applied, false) && record.Hash == hash {
		return
	}
	step.Warning(ctx, addonsv1.ApplyFailedV1Beta1Reason, "Cannot apply %s %s of ClusterResourceSet %s: %s", w.ref.Kind, w.ref.Name, w.set.Name,
		condition.Truncate(strings.Join(problems, ", "), maxEvent))
}

// note records the Outcomes of all ClusterResourceSets.
func (c *Controller) note(
	s *scope, session *workload.Session, failures map[*addonsv1.ClusterResourceSet]map[addonsv1.ResourceRef]outcome.Failure,
) {
	silent := ""
	if session.Silent() {
		silent = workload.ErrSilent.Error()
		s.retryAt(c.Clock.Now().Add(silentRetry))
	}
	for _, w := range s.work {
		all := failures[w.set]
		if all == nil {
			last, _ := c.ledger.Of(s.key(), w.set.Name)
			all = last.Failures
		}
		c.ledger.Record(s.key(), w.set.Name, outcome.Outcome{Unreachable: silent, Failures: all})
	}
}
