package campaign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/members"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

const (
	// patience is how long a condition may take to come true: many times what it takes on a quiet machine.
	patience = 3 * time.Minute
	// quiet is how long nothing has to change until a run is taken for complete. Managers hold some status back for a second.
	quiet = 1500 * time.Millisecond
	// aftermath is the same after a run in which something could not be reached: a manager notices that when the call that
	// hangs ends, and when it leaves the other side alone for a while it takes as long to notice that all is well again.
	aftermath = 15 * time.Second
	// classQuiet is the same for the class, whose status is not held back.
	classQuiet = 300 * time.Millisecond
	// retry is how soon a change that failed is tried again.
	retry = 100 * time.Millisecond
)

// Runner makes runs in a World, one at a time. What a run made stays until Settle.
type Runner struct {
	// World is where runs take place.
	World *world.World
	// Rest is how long nothing may be written in the end.
	Rest time.Duration

	parked []*Result
	read   map[string]int64 // by log: how much of it was read
}

// Result is what came of a run. Settle completes it.
type Result struct {
	// Case is what was done.
	Case
	// Namespace is where it took place.
	Namespace string
	// Happened is how many of the faults did.
	Happened int
	// Violations are the rules that were broken.
	Violations []invariant.Violation
	// Records are the writes of the managers during the change.
	Records []script.Record
	// Shape is what there was in the end.
	Shape []string
	// Duration is how long it took, without the rest.
	Duration time.Duration

	script       *script.Script
	confidential map[string]string
	class        history.State // what there was before the Cluster
}

func (r *Result) violate(rule, detail string) {
	r.Violations = append(r.Violations, invariant.Violation{Rule: rule, Detail: detail})
}

// Run makes one run. Calm is the shape of the calm run, nil if this is it. An error means that the run says nothing.
func (r *Runner) Run(ctx context.Context, c Case, calm []string) (*Result, error) {
	result := &Result{Case: c}
	begin := time.Now()
	err := r.run(ctx, result, calm)
	result.Duration = time.Since(begin)
	if err != nil {
		return result, fmt.Errorf("%s in namespace %s: %w", c.Replay(), result.Namespace, err)
	}
	return result, nil
}

func (r *Runner) run(ctx context.Context, result *Result, calm []string) error {
	var err error
	if result.Namespace, err = r.World.Namespace(ctx); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	result.script = script.New(result.Namespace, result.Faults...)
	r.World.Stage.Play(result.script)
	r.parked = append(r.parked, result)
	etcd := members.Watch(ctx, members.Options{
		Recorder: r.World.Recorder, Namespace: result.Namespace, Cluster: scenario.ClusterName, Exists: r.exists(result.Namespace),
	})
	defer etcd.Stop()
	before, err := r.prepare(ctx, result)
	if err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	result.script.Arm()
	if err := r.change(ctx, result); err != nil {
		return err
	}
	err = r.await(ctx, result.Namespace, quiet, result.done(calm)...)
	result.script.Disarm()
	r.World.Stage.Views().Clear()
	if problem := r.World.Steady(ctx); problem != nil {
		return problem
	}
	if still := result.aftermath(); err == nil && still > 0 {
		err = r.await(ctx, result.Namespace, still, result.done(calm)...)
	}
	result.Happened, result.Records = result.script.Happened(), result.script.Records()
	if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
		return problem
	}
	if err != nil {
		result.violate("it gets there", err.Error())
	}
	for _, name := range r.World.Crashes() {
		result.violate("managers end only when they are killed", name+" ended by itself")
	}
	return r.judge(ctx, result, invariant.Run{Scenario: result.Scenario, Before: before, Samples: etcd.Stop(), Calm: calm})
}

// aftermath is how long nothing may change after the faults that happened until the run is over; 0 if they leave nothing
// behind. A manager may still wait for an answer, and act when it comes, though all is done; an event whose connection broke is
// sent again after ten seconds.
func (r *Result) aftermath() time.Duration {
	still := time.Duration(0)
	for _, one := range r.script.Records() {
		if one.Fault == nil {
			continue
		}
		switch {
		case one.Fault.Do.Parts(), one.Resource == "events" && one.Fault.Do.Breaks():
			still = max(still, aftermath)
		case one.Fault.Do == script.TimeOut, one.Fault.Do == script.Stall, one.Fault.Do == script.BlackHole:
			still = max(still, quiet+one.Fault.Duration())
		case one.Fault.Do == script.Suspend:
			still = max(still, quiet)
		}
	}
	return still
}

// exists asks whether the infrastructure of a machine is there.
func (r *Runner) exists(namespace string) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, machine string) (bool, error) {
		err := r.World.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: machine}, scenario.InfrastructureOf(machine))
		return err == nil, client.IgnoreNotFound(err)
	}
}

// done is when the run is over. Some conditions, such as those of etcd's members, are only looked at now and then, so the
// end of the calm run is part of it; when it does not come, the rule about it says what differs.
func (r *Result) done(calm []string) []scenario.Condition {
	conditions := slices.Clone(r.Scenario.Done)
	if r.Scenario.Deletes {
		conditions = append(conditions, scenario.Only(r.class))
	}
	if calm == nil {
		return conditions
	}
	return append(conditions, func(now history.State) error {
		if !slices.Equal(calm, invariant.Shape(now)) {
			return errors.New("the end is not that of a calm run")
		}
		return nil
	})
}

// prepare brings the Cluster to the start of the scenario, without faults, and returns what happened.
func (r *Runner) prepare(ctx context.Context, result *Result) (history.Timeline, error) {
	if err := r.await(ctx, result.Namespace, classQuiet, scenario.ClassReady); err != nil {
		return nil, err
	}
	result.class, _ = r.World.Recorder.Now(result.Namespace)
	if size := result.Scenario.Before; size != nil {
		if err := scenario.Create(*size)(ctx, r.target(result.Namespace)); err != nil {
			return nil, err
		}
		if err := r.await(ctx, result.Namespace, quiet, scenario.Ready(*size)); err != nil {
			return nil, err
		}
	}
	err := r.World.Recorder.Complete(ctx, result.Namespace)
	return r.World.Recorder.Timeline(result.Namespace), err
}

func (r *Runner) target(namespace string) scenario.Target {
	now, _ := r.World.Recorder.Now(namespace)
	return scenario.Target{Client: r.World.Client, Namespace: namespace, Start: now}
}

// change does what the scenario does. A user tries again what fails because a webhook is down.
func (r *Runner) change(ctx context.Context, result *Result) error {
	target := r.target(result.Namespace)
	for _, change := range result.Scenario.Change {
		deadline := time.Now().Add(patience)
		for {
			err := change(ctx, target)
			if err == nil {
				break
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				return fmt.Errorf("the change itself: %w", err)
			}
			time.Sleep(retry)
		}
	}
	return nil
}

// await returns when all conditions are true and nothing has changed for a while.
func (r *Runner) await(ctx context.Context, namespace string, still time.Duration, conditions ...scenario.Condition) error {
	deadline := time.Now().Add(patience)
	for {
		now, changed := r.World.Recorder.Now(namespace)
		var err error
		for i := 0; err == nil && i < len(conditions); i++ {
			err = conditions[i](now)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not after %s: %w", patience, errors.Join(err, errors.New("things still change")))
		}
		wait := time.Until(deadline)
		if err == nil {
			wait = still
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(wait):
			if err == nil {
				return nil
			}
		}
	}
}

// judge checks the rules.
func (r *Runner) judge(ctx context.Context, result *Result, known invariant.Run) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.World.Recorder.Complete(ctx, result.Namespace); err != nil {
		return err
	}
	all := r.World.Recorder.Timeline(result.Namespace)
	result.Shape = invariant.Shape(all.End())
	known.Timeline = all[len(known.Before):]
	result.Violations = append(result.Violations, invariant.Check(known)...)
	result.confidential = invariant.Confidential(all)
	return nil
}
