package host

import (
	"context"
	"fmt"
	"sync"
)

// phase is the phase of an instance.
type phase string

const (
	phaseStarting phase = "Starting"
	phaseReady    phase = "Ready"
	phaseFailed   phase = "Failed"
	phaseStopping phase = "Stopping"
)

// state is the state of an instance.
type state struct {
	phase   phase
	message string // why it is not ready
}

// instance is a component that is running or about to be restarted.
type instance struct {
	plan      *plan
	listeners *listeners
	cancel    context.CancelFunc
	stopping  <-chan struct{} // closed when the instance is to stop
	ended     chan struct{}
	earlier   []<-chan struct{} // closed when the instances before this one have ended
	orphaned  bool              // its Deployment was deleted without it; guarded by host.mu

	mu sync.Mutex
	state
}

// lead waits until all earlier instances have ended.
func (i *instance) lead(ctx context.Context) error {
	for _, ended := range i.earlier {
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// hasEnded reports whether the instance has stopped completely.
func (i *instance) hasEnded() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// set sets the phase of the instance. Stopping is final.
func (i *instance) set(p phase, message string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != phaseStopping {
		i.phase, i.message = p, message
	}
}

// report records the result of the readiness probe, and reports whether it changed. While a component restarts, the error
// of its last failure is kept until it is ready.
func (i *instance) report(ready bool, why string) bool {
	before := i.observe()
	switch {
	case ready:
		i.set(phaseReady, "")
	case before.phase != phaseFailed:
		i.set(phaseStarting, why)
	}
	return i.observe() != before
}

// observe returns the state of the instance.
func (i *instance) observe() state {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

// member returns what rollouts depend on.
func (i *instance) member() member {
	seen := i.observe()
	return member{hash: i.plan.hash, ready: seen.phase == phaseReady, stopping: seen.phase == phaseStopping}
}

// describe names the instance for messages.
func (i *instance) describe() string {
	return fmt.Sprintf("%s of Deployment %s", i.plan.program, i.plan.deployment)
}
