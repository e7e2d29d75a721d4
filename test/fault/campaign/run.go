package campaign

import (
	"cmp"
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
	// conditionTimeout is how long a condition may take to become true: many times what it takes on an idle machine. The longest one
	// takes almost 3 minutes on any: after an outage, backoffs of up to a minute end one after the other.
	conditionTimeout = 5 * time.Minute
	// quietPeriod is how long nothing must change before a run is complete. Managers delay some status writes for a second.
	quietPeriod = 1500 * time.Millisecond
	// longQuietPeriod is the same after a partition: a manager notices one when a hanging call ends, and its backoff delays
	// the next attempt.
	longQuietPeriod = 15 * time.Second
	// classQuietPeriod is the same for the class, whose status is not delayed.
	classQuietPeriod = 300 * time.Millisecond
	// retry is the interval at which a failed change is retried.
	retry = 100 * time.Millisecond
)

// Runner executes runs in a World, one at a time. The Clusters of the runs exist until Finish.
type Runner struct {
	// World is the environment of the runs.
	World *world.World
	// Rest is how long nothing may be written after the runs.
	Rest time.Duration

	pending []*Result
	read    map[string]int64 // bytes that were read, by log
}

// Result is the result of a run. Finish completes it.
type Result struct {
	// Case is the input of the run.
	Case
	// Namespace is the run's own.
	Namespace string
	// Injected is the number of faults that were injected.
	Injected int
	// Violations are the violated rules.
	Violations []invariant.Violation
	// Records are the writes of the managers during the change.
	Records []script.Record
	// Shape describes the final state: that at the end of the run, and after Finish that in which managers had nothing left to write.
	Shape []string
	// Duration is how long the run took, without Finish.
	Duration time.Duration

	script       *script.Script
	confidential map[string]string
	class        history.State // the state before the Cluster was created
}

func (r *Result) violate(rule, detail string) {
	r.Violations = append(r.Violations, invariant.Violation{Rule: rule, Detail: detail})
}

// Run executes one run. baseline is the final state of the baseline run, nil if this is it. An error means that there is no valid result.
func (r *Runner) Run(ctx context.Context, c Case, baseline []string) (*Result, error) {
	result := &Result{Case: c}
	begin := time.Now()
	err := r.run(ctx, result, baseline)
	result.Duration = time.Since(begin)
	if err != nil {
		return result, fmt.Errorf("%s in namespace %s: %w", c.Replay(), result.Namespace, err)
	}
	return result, nil
}

func (r *Runner) run(ctx context.Context, result *Result, baseline []string) error {
	var err error
	if result.Namespace, err = r.World.Namespace(ctx); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	result.script = script.New(result.Namespace, result.Faults...)
	r.World.Scripts.Activate(result.script)
	r.pending = append(r.pending, result)
	etcd := r.watchMembers(ctx, result)
	defer func() { etcd.Stop() }()
	stop := r.provide(ctx, result)
	defer stop()
	before, err := r.prepare(ctx, result)
	if err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	if result.Scenario.Arrange != nil {
		etcd.Stop()
		if before, err = r.arrange(ctx, result); err != nil {
			return fmt.Errorf("preparing: %w", err)
		}
		etcd = r.watchMembers(ctx, result)
	}
	result.script.Arm()
	probed := r.probe(ctx, result)
	defer func() { _ = probed() }() // Its error counts below, unless another one ends the run.
	if err = r.change(ctx, result); err == nil {
		err = r.waitFor(ctx, result.Namespace, quietPeriod, result.done(baseline)...)
	}
	result.script.Disarm()
	r.World.Scripts.Ongoing().Clear()
	if problem := r.World.WaitUntilResumed(ctx); problem != nil {
		return problem
	}
	if still := result.quietAfterFaults(); err == nil && still > 0 {
		err = r.waitFor(ctx, result.Namespace, still, result.done(baseline)...)
	}
	if failed := probed(); failed != nil {
		result.violate("webhooks always respond", failed.Error())
	}
	result.Injected, result.Records = result.script.Injected(), result.script.Records()
	if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
		return problem
	}
	if err != nil {
		result.violate("the Cluster converges", err.Error())
	}
	for _, crash := range r.World.Crashes() {
		result.violate("no manager exits by itself", crash.String())
	}
	return r.judge(ctx, result, invariant.Run{Scenario: result.Scenario, Before: before, Samples: etcd.Stop(), Baseline: baseline})
}

// quietAfterFaults returns how long nothing must change after the injected faults before the run is complete; 0 if the faults
// have no delayed effects. A manager may still wait for a response, and act on it later. An Event whose request failed is
// sent again after ten seconds.
func (r *Result) quietAfterFaults() time.Duration {
	still := time.Duration(0)
	for _, one := range r.script.Records() {
		if one.Fault == nil {
			continue
		}
		switch {
		case one.Fault.Do.Partitions(), one.Resource == "events" && one.Fault.Do.Breaks():
			still = max(still, longQuietPeriod)
		case one.Fault.Do == script.TimeOut, one.Fault.Do == script.Stall, one.Fault.Do == script.BlackHole:
			still = max(still, quietPeriod+one.Fault.Duration())
		case one.Fault.Do == script.Suspend:
			still = max(still, quietPeriod)
		}
	}
	return still
}

// exists returns a function that reports whether the infrastructure of a machine exists.
func (r *Runner) exists(namespace string) func(context.Context, string) (bool, error) {
	return func(ctx context.Context, machine string) (bool, error) {
		err := r.World.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: machine}, scenario.InfrastructureOf(machine))
		return err == nil, client.IgnoreNotFound(err)
	}
}

// done returns the conditions for the end of the run. Some conditions, such as those of etcd members, are only refreshed
// periodically, so the final state of the baseline run is one of them; if it is not reached, its rule reports the difference.
func (r *Result) done(baseline []string) []scenario.Condition {
	conditions := slices.Clone(r.Scenario.Done)
	if r.Scenario.Deletes {
		conditions = append(conditions, scenario.Only(r.class))
	}
	if baseline == nil {
		return conditions
	}
	return append(conditions, func(now history.State) error {
		if !slices.Equal(baseline, invariant.Shape(now)) {
			return errors.New("the state differs from the final state of the baseline run")
		}
		return nil
	})
}

// prepare creates the Cluster that the scenario starts with, without faults, and returns the events until then.
func (r *Runner) prepare(ctx context.Context, result *Result) (history.Timeline, error) {
	if !result.Scenario.Operator {
		if err := r.waitFor(ctx, result.Namespace, classQuietPeriod, scenario.ClassReady); err != nil {
			return nil, err
		}
	}
	if result.Scenario.Prepare != nil {
		if err := result.Scenario.Prepare(ctx, r.target(result.Namespace)); err != nil {
			return nil, err
		}
		if err := r.World.Recorder.Complete(ctx, result.Namespace); err != nil {
			return nil, err
		}
		prepared := scenario.ClassReady
		if result.Scenario.Prepared != nil {
			prepared = result.Scenario.Prepared
		}
		if err := r.waitFor(ctx, result.Namespace, classQuietPeriod, prepared); err != nil {
			return nil, err
		}
	}
	result.class, _ = r.World.Recorder.Now(result.Namespace)
	if size := result.Scenario.Before; size != nil {
		if err := scenario.Create(*size)(ctx, r.target(result.Namespace)); err != nil {
			return nil, err
		}
		if err := r.waitFor(ctx, result.Namespace, quietPeriod, scenario.Ready(*size)); err != nil {
			return nil, err
		}
	}
	err := r.World.Recorder.Complete(ctx, result.Namespace)
	return r.World.Recorder.Timeline(result.Namespace), err
}

// arrange makes the further preparations of a scenario when the Cluster is ready, if it exists, and returns the events until then.
func (r *Runner) arrange(ctx context.Context, result *Result) (history.Timeline, error) {
	if err := result.Scenario.Arrange(ctx, r.target(result.Namespace)); err != nil {
		return nil, err
	}
	if result.Scenario.Recorded { // Managers report first that everything is paused.
		if err := r.waitFor(ctx, result.Namespace, quietPeriod); err != nil {
			return nil, err
		}
	}
	if err := r.World.Recorder.Complete(ctx, result.Namespace); err != nil {
		return nil, err
	}
	// The objects that existed before the Cluster may be new ones of the same name.
	now, _ := r.World.Recorder.Now(result.Namespace)
	for key := range result.class {
		result.class[key] = now[key]
	}
	return r.World.Recorder.Timeline(result.Namespace), nil
}

func (r *Runner) watchMembers(ctx context.Context, result *Result) *members.Watcher {
	return members.Watch(ctx, members.Options{
		Recorder: r.World.Recorder, Namespace: result.Namespace, Cluster: scenario.ClusterName, Exists: r.exists(result.Namespace),
	})
}

func (r *Runner) target(namespace string) scenario.Target {
	now, _ := r.World.Recorder.Now(namespace)
	return scenario.Target{
		Client: r.World.Client, Config: r.World.Config, Namespace: namespace, LastPort: r.World.LastPort, Start: now, Releases: r.World.Releases,
		Root: r.World.Root, DataDir: r.World.DataDir(), Backups: r.World.Backups(),
		Until: func(ctx context.Context, conditions ...scenario.Condition) error {
			return r.waitFor(ctx, namespace, 0, conditions...)
		},
	}
}

// change executes the scenario. It retries as a user does, for example when a webhook is down.
func (r *Runner) change(ctx context.Context, result *Result) error {
	target := r.target(result.Namespace)
	for _, change := range result.Scenario.Change {
		deadline := time.Now().Add(conditionTimeout)
		for {
			err := change(ctx, target)
			if err == nil {
				break
			}
			if time.Now().After(deadline) || ctx.Err() != nil {
				return fmt.Errorf("changing the Cluster: %w", err)
			}
			time.Sleep(retry)
		}
	}
	return nil
}

// waitFor returns when all conditions are true and nothing has changed for a while.
func (r *Runner) waitFor(ctx context.Context, namespace string, still time.Duration, conditions ...scenario.Condition) error {
	deadline := time.Now().Add(conditionTimeout)
	for {
		now, changed := r.World.Recorder.Now(namespace)
		var err error
		for i := 0; err == nil && i < len(conditions); i++ {
			err = conditions[i](now)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %s: %w", conditionTimeout, cmp.Or(err, errors.New("objects still change")))
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
	ctx, cancel := context.WithTimeout(ctx, conditionTimeout)
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
