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

// Settle watches the Clusters of all runs since the last time while nothing goes wrong: nobody may write. Then it deletes
// them, and nothing may be left. What it finds is added to the Results of the runs.
func (r *Runner) Settle(ctx context.Context) error {
	if err := r.rest(ctx); err != nil {
		return err
	}
	if err := r.readLogs(); err != nil {
		return err
	}
	for _, result := range r.parked {
		if err := r.delete(ctx, result); err != nil {
			return fmt.Errorf("deleting the Cluster in namespace %s: %w", result.Namespace, err)
		}
	}
	for _, result := range r.parked {
		err := r.await(ctx, result.Namespace, 0, scenario.Absent, scenario.Only(result.class))
		if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
			return problem
		}
		if err != nil {
			result.violate("nothing is left over", err.Error())
		}
		r.World.Stage.Leave(result.script)
		r.World.Recorder.Forget(result.Namespace)
		if err := r.World.Discard(ctx, result.Namespace); err != nil {
			return err
		}
	}
	r.parked = nil
	return nil
}

func (r *Runner) rest(ctx context.Context) error {
	before := map[*Result]int{}
	for _, result := range r.parked {
		before[result] = len(result.script.Records())
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.Rest):
	}
	for _, result := range r.parked {
		for _, write := range result.script.Records()[before[result]:] {
			if write.Lease() {
				continue // Leaders renew them all the time.
			}
			result.violate("nothing is written at rest", fmt.Sprintf("%s %s, answered %d", write.Kind(), write.Name, write.Code))
		}
	}
	return nil
}

func (r *Runner) delete(ctx context.Context, result *Result) error {
	deadline := time.Now().Add(patience)
	for {
		err := scenario.Delete(ctx, r.target(result.Namespace))
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(retry)
	}
}

// readLogs looks for confidential content of the runs in what the managers have logged since the last time.
func (r *Runner) readLogs() error {
	for _, path := range r.World.Logs() {
		text, err := r.unread(path)
		if err != nil {
			return err
		}
		for _, result := range r.parked {
			if what, found := invariant.Told(result.confidential, text); found {
				result.violate("nothing confidential is in logs", fmt.Sprintf("%s has a %s", path, what))
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
