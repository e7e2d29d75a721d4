package campaign

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// probeInterval is the time between two probes.
const probeInterval = 250 * time.Millisecond

// probe makes the Probe of a scenario again and again until stop is called, which returns its first error.
func (r *Runner) probe(ctx context.Context, result *Result) (stop func() error) {
	if result.Scenario.Probe == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		begin, target := time.Now(), r.target(result.Namespace)
		for {
			err := result.Scenario.Probe(ctx, target)
			if ctx.Err() != nil {
				failed <- nil
				return
			}
			if err != nil {
				failed <- fmt.Errorf("%s after the change: %w", time.Since(begin).Round(time.Millisecond), err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(probeInterval):
			}
		}
	}()
	return sync.OnceValue(func() error { cancel(); return <-failed })
}
