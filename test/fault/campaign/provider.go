package campaign

import (
	"context"
	"time"
)

// provide calls the Provider of a scenario with every new state of its namespace until stop is called, as the controller of a
// third-party provider. It is not subject to faults.
func (r *Runner) provide(ctx context.Context, result *Result) (stop func()) {
	if result.Scenario.Provider == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			now, changed := r.World.Recorder.Now(result.Namespace)
			var again <-chan time.Time
			if err := result.Scenario.Provider(ctx, r.target(result.Namespace), now); err != nil {
				again = time.After(retry) // A webhook may be down.
			}
			select {
			case <-ctx.Done():
			case <-changed:
			case <-again:
			}
		}
	}()
	return func() { cancel(); <-done }
}
