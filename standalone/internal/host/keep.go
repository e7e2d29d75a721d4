package host

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"
)

const (
	// firstDelay and maxDelay bound the delay before a failed component is restarted; it doubles each time.
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// steady is how long a component must run until the restart delay is reset.
	steady = time.Minute
)

// start runs the plan until the instance is canceled. It leads when the earlier instances have ended.
func (h *host) start(p *plan, earlier []*instance, changed func()) *instance {
	var ends []<-chan struct{}
	for _, e := range earlier {
		ends = append(ends, e.ended)
	}
	ctx, cancel := context.WithCancel(h.running)
	i := &instance{
		plan: p, listeners: newListeners(), cancel: cancel, stopping: ctx.Done(), ended: make(chan struct{}), earlier: ends,
		state: state{phase: phaseStarting, message: "the component is starting"},
	}
	go func() {
		defer changed()
		defer close(i.ended)
		h.keep(ctx, i, changed)
	}()
	return i
}

// keep runs the component, and restarts it with backoff when it exits. Panics are not recovered, because that would leave
// the component's locks and goroutines behind: the process crashes with a stack trace.
func (h *host) keep(ctx context.Context, i *instance, changed func()) {
	delay := firstDelay
	for {
		began := h.Clock.Now()
		err := h.once(ctx, i, changed)
		if ctx.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				h.Logger.Error(err, "Component returned an error when it was stopped", "deployment", i.plan.deployment)
			}
			return
		}
		if err == nil {
			err = errors.New("the component exited")
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

// once runs the component once and cleans up after it.
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

// process returns the component's environment.
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
		Lead:      i.lead,
		Dial:      h.dial,
		DataDir:   filepath.Join(h.DataDir, pod.Namespace, i.plan.deployment.Name),
		Getenv:    func(name string) string { return env[name] },
		Logger:    h.Logger.WithName(pod.Namespace).WithName(i.plan.program),
	}, args, nil
}

// stop cancels the component, without waiting for it. Unlike a process, a component that exceeds its grace period cannot
// be killed: that is only logged.
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
			h.Logger.Error(nil, "Component does not stop, its replacement does not reconcile yet",
				"deployment", i.plan.deployment, "grace", i.plan.grace)
		}
	}()
}
