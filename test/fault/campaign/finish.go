package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// Finish completes all runs since the last call. First, no manager may write for some time. Then `clusterctl explain`
// must find the cause of what a Cluster waits for, and nothing otherwise. Then it deletes the Clusters, and nothing may be left. It adds violations to the Results of the runs.
func (r *Runner) Finish(ctx context.Context) error {
	if err := r.rest(ctx); err != nil {
		return err
	}
	if err := r.readLogs(); err != nil {
		return err
	}
	for _, result := range r.pending {
		if err := r.explain(ctx, result); err != nil {
			return err
		}
		if err := r.delete(ctx, result); err != nil {
			return fmt.Errorf("deleting the Cluster in namespace %s: %w", result.Namespace, err)
		}
	}
	for _, result := range r.pending {
		err := r.waitFor(ctx, result.Namespace, 0, scenario.Absent, scenario.Only(result.class))
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

func (r *Runner) rest(ctx context.Context) error {
	before := map[*Result]int{}
	for _, result := range r.pending {
		before[result] = len(result.script.Records())
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.Rest):
	}
	for _, result := range r.pending {
		for _, write := range result.script.Records()[before[result]:] {
			if write.Lease() {
				continue // Leaders renew them periodically.
			}
			result.violate("nothing is written when idle", fmt.Sprintf("%s %s, status %d", write.Kind(), write.Name, write.Code))
		}
	}
	return nil
}

func (r *Runner) delete(ctx context.Context, result *Result) error {
	deadline := time.Now().Add(conditionTimeout)
	for {
		err := scenario.Delete(ctx, r.target(result.Namespace))
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
