package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Finish completes all runs since the last call. First, no manager may write for some time. Then `clusterctl explain` must find
// the cause of what a Cluster waits for, and nothing otherwise. Then it deletes the Clusters, and nothing may be left. It adds
// violations to the Results of the runs.
func (r *Runner) Finish(ctx context.Context) error {
	if err := r.rest(ctx); err != nil {
		return err
	}
	if err := r.readLogs(); err != nil {
		return err
	}
	for _, result := range r.pending {
		// On a slow machine, the run may have ended before the last delayed write, and other runs are compared with its state.
		now, _ := r.World.Recorder.Now(result.Namespace)
		result.Shape = invariant.Shape(now)
		if err := r.explain(ctx, result); err != nil {
			return err
		}
		if err := r.delete(ctx, result); err != nil {
			return fmt.Errorf("deleting the Cluster in namespace %s: %w", result.Namespace, err)
		}
	}
	for _, result := range r.pending {
		err := r.waitFor(ctx, result.Namespace, 0, result.discarded()...)
		if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
			return problem
		}
		if err != nil {
			result.violate("nothing is left after deletion", err.Error())
		}
		r.World.Scripts.Remove(result.script)
		r.World.Recorder.Forget(result.Namespace)
		if err := r.World.Discard(ctx, result.Namespace); err != nil {
			return err
		}
	}
	if n := len(r.pending); n > 0 {
		for _, crash := range r.World.Crashes() {
			r.pending[n-1].violate("no manager exits by itself", crash.String()+" (after the run)")
		}
	}
	r.pending = nil
	return nil
}

// discarded returns the conditions for the end of deletion.
func (r *Result) discarded() []scenario.Condition {
	if r.Scenario.Discarded != nil {
		return []scenario.Condition{r.Scenario.Discarded}
	}
	return []scenario.Condition{scenario.Absent, scenario.Only(r.class)}
}

const (
	// operatorRest limits Rest for scenarios of the operator, whose runs cannot be finished together.
	operatorRest = 2 * time.Second
	// calm is how long managers must not write before the time begins in which they must not.
	calm = 10 * time.Second
	// calms is how often that is waited for.
	calms = 4
)

// rest checks that no manager writes for some time.
func (r *Runner) rest(ctx context.Context) error {
	rest := r.Rest
	if !slices.ContainsFunc(r.pending, func(result *Result) bool { return result.Scenario.Operator }) {
		if err := r.settle(ctx); err != nil {
			return err
		}
	} else if slices.ContainsFunc(r.pending, func(result *Result) bool { return result.Family != "" }) {
		rest = min(rest, operatorRest)
	}
	before, err := r.recordsAfter(ctx, 0)
	if err != nil {
		return err
	}
	if _, err := r.recordsAfter(ctx, rest); err != nil {
		return err
	}
	for _, result := range r.pending {
		for _, write := range objectWrites(result)[before[result]:] {
			result.violate("nothing is written when idle", fmt.Sprintf("%s %s, status %d", write.Kind(), write.Name, write.Code))
		}
	}
	return nil
}

// settle waits for what the last faults cause in the Clusters of all runs. If the provider of in-memory machines is killed, their
// workload clusters do not respond for some seconds, and health checks say so in their conditions.
func (r *Runner) settle(ctx context.Context) error {
	before, err := r.recordsAfter(ctx, 0)
	for range calms {
		if err != nil {
			return err
		}
		var after map[*Result]int
		if after, err = r.recordsAfter(ctx, calm); maps.Equal(before, after) {
			return err
		}
		before = after
	}
	return err
}

// recordsAfter returns the numbers of writes of all runs after some time, without those of leases.
func (r *Runner) recordsAfter(ctx context.Context, d time.Duration) (map[*Result]int, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
	}
	counts := map[*Result]int{}
	for _, result := range r.pending {
		counts[result] = len(objectWrites(result))
	}
	return counts, nil
}

// objectWrites returns the writes of a run, except those of leases, which leaders renew periodically.
func objectWrites(result *Result) []script.Record {
	return slices.DeleteFunc(slices.Clone(result.script.Records()), func(r script.Record) bool { return r.Lease() })
}

func (r *Runner) delete(ctx context.Context, result *Result) error {
	deadline := time.Now().Add(conditionTimeout)
	for {
		discard := scenario.Delete
		if result.Scenario.Discard != nil {
			discard = result.Scenario.Discard
		}
		err := discard(ctx, r.target(result.Namespace))
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retry)
	}
}

// readLogs searches what the managers have logged since the last call for confidential content of the runs.
func (r *Runner) readLogs() error {
	for _, path := range r.World.Logs() {
		text, err := r.unread(path)
		if err != nil {
			return err
		}
		for _, result := range r.pending {
			if what, found := invariant.Leaked(result.confidential, text); found {
				result.violate("no confidential content in logs", fmt.Sprintf("%s contains a %s", path, what))
			}
		}
	}
	return nil
}

func (r *Runner) unread(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	if r.read == nil {
		r.read = map[string]int64{}
	}
	if _, err := file.Seek(r.read[path], io.SeekStart); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	r.read[path] += int64(len(text))
	return string(text), err
}
