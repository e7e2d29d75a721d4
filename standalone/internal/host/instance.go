package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const (
	// firstDelay and maxDelay bound the pause before a component that failed is started again; it doubles in between.
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// steady is how long a component must have run for its next failure to count as the first.
	steady = time.Minute
)

// phase is what an instance is doing.
type phase string

const (
	phaseStarting phase = "Starting"
	phaseReady    phase = "Ready"
	phaseFailed   phase = "Failed"
	phaseStopping phase = "Stopping"
)

// instance is one component that runs, or is about to run again.
type instance struct {
	plan      *plan
	listeners *listeners
	cancel    context.CancelFunc
	ended     chan struct{}

	mu      sync.Mutex
	phase   phase
	message string // why it is not ready
}

// start runs the plan until the instance is cancelled.
func (h *host) start(p *plan, changed func()) *instance {
	ctx, cancel := context.WithCancel(h.running)
	i := &instance{
		plan: p, listeners: newListeners(), cancel: cancel, ended: make(chan struct{}),
		phase: phaseStarting, message: "the component is starting",
	}
	go func() {
		defer changed()
		defer close(i.ended)
		h.keep(ctx, i, changed)
	}()
	return i
}

// keep runs the component, and again with growing pauses when it ends by itself. A panic is not caught: it would
// leave the component's locks and goroutines behind, so the process ends with it and shows the trace.
func (h *host) keep(ctx context.Context, i *instance, changed func()) {
	delay := firstDelay
	for {
		began := h.Clock.Now()
		err := h.once(ctx, i, changed)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				h.Logger.Error(err, "Component ended with an error when it was stopped", "deployment", i.plan.deployment)
			}
			return
		}
		if err == nil {
			err = errors.New("the component ended by itself")
		}
		if h.Clock.Since(began) >= steady {
			delay = firstDelay
		}
		h.Logger.Error(err, "Component failed", "deployment", i.plan.deployment, "restartIn", delay)
		i.set(phaseFailed, err.Error())
		changed()
		select {
		case <-ctx.Done():
			return
		case <-h.Clock.After(delay):
		}
		delay = min(2*delay, maxDelay)
	}
}

// once runs the component one time and cleans up after it.
func (h *host) once(ctx context.Context, i *instance, changed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	process, args, err := h.process(ctx, i)
	if err != nil {
		return err
	}
	report := func(ready bool, why string) {
		if i.report(ready, why) {
			changed()
		}
	}
	var probing sync.WaitGroup
	if prober := newProber(i.plan.container, i.listeners, h.Clock); prober != nil {
		probing.Go(func() { prober.run(ctx, report) })
	} else {
		report(true, "")
	}
	err = h.Programs[i.plan.program](ctx, args, process)
	cancel()
	probing.Wait()
	i.listeners.closeAll()
	return err
}

// process gathers what the component gets in place of a container's surroundings.
func (h *host) process(ctx context.Context, i *instance) (Process, []string, error) {
	pod := i.plan.pod
	env, args, err := environment(ctx, h.live, i.plan)
	if err != nil {
		return Process{}, nil, err
	}
	identity := &account{client: h.kubernetes, namespace: pod.Namespace, name: pod.Spec.ServiceAccountName, clock: h.Clock}
	config, err := identity.config(h.Server, h.CAData)
	if err != nil {
		return Process{}, nil, err
	}
	return Process{
		Config:    config,
		Namespace: pod.Namespace,
		Listen:    i.listeners.listen,
		DataDir:   filepath.Join(h.DataDir, pod.Namespace, i.plan.deployment.Name),
		Getenv:    func(name string) string { return env[name] },
		Logger:    h.Logger.WithName(pod.Namespace).WithName(i.plan.program),
	}, args, nil
}

// stop asks the component to end. It does not wait. A component that outlives its grace period cannot be killed, as a
// process could: it is complained about.
func (h *host) stop(i *instance) {
	if i.observe().phase == phaseStopping {
		return
	}
	i.set(phaseStopping, "the component is stopping")
	i.cancel()
	go func() {
		select {
		case <-i.ended:
		case <-h.Clock.After(i.plan.grace):
			h.Logger.Error(nil, "Component does not end; what was to follow it waits", "deployment", i.plan.deployment, "grace", i.plan.grace)
		}
	}()
}

// hasEnded reports whether nothing of the instance runs any more.
func (i *instance) hasEnded() bool {
	select {
	case <-i.ended:
		return true
	default:
		return false
	}
}

// set records what the instance is doing. Stopping is final.
func (i *instance) set(p phase, message string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != phaseStopping {
		i.phase, i.message = p, message
	}
}

// report records what the readiness probe says, and reports whether that is news. Why a component failed stays to be read
// while it starts again, until it is ready.
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

// observe returns what the instance is doing.
func (i *instance) observe() observation {
	i.mu.Lock()
	defer i.mu.Unlock()
	return observation{phase: i.phase, message: i.message}
}

// describe names the instance for messages.
func (i *instance) describe() string {
	return fmt.Sprintf("%s of Deployment %s", i.plan.program, i.plan.deployment)
}
