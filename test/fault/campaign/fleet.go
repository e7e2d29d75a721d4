package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/request"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// partedShare is which share of a fleet, in percent, cannot be reached.
const partedShare = 30

// outage is how long a fleet's outage lasts at most: it ends when the others are done.
const outage = 10 * time.Minute

// Fleet makes many Clusters, and changes all of them while some workload clusters answer nothing. The others have to get
// there meanwhile, and those when they answer again. Rules about members of etcd are not checked.
func (r *Runner) Fleet(ctx context.Context, clusters int) ([]*Result, error) {
	s := scenario.Fleet()
	all := make([]*Result, clusters)
	for i := range all {
		all[i] = &Result{Case: Case{Scenario: s, Family: "partition"}}
	}
	err := r.fleet(ctx, all)
	return all, err
}

func (r *Runner) fleet(ctx context.Context, all []*Result) error {
	for _, one := range all {
		if err := r.enlist(ctx, one); err != nil {
			return fmt.Errorf("preparing a fleet: %w", err)
		}
	}
	before := make([]history.Timeline, len(all))
	for i, one := range all {
		if err := r.await(ctx, one.Namespace, quiet, scenario.Ready(*one.Scenario.Before)); err != nil {
			return fmt.Errorf("preparing a fleet: namespace %s: %w", one.Namespace, err)
		}
		if err := r.World.Recorder.Complete(ctx, one.Namespace); err != nil {
			return err
		}
		before[i] = r.World.Recorder.Timeline(one.Namespace)
	}
	parted := all[:len(all)*partedShare/100]
	if err := r.strike(ctx, all, parted); err != nil {
		return err
	}
	for i, one := range all {
		if err := r.judge(ctx, one, invariant.Run{Scenario: one.Scenario, Before: before[i], Unwatched: true}); err != nil {
			return err
		}
	}
	return nil
}

// enlist makes one Cluster of a fleet.
func (r *Runner) enlist(ctx context.Context, one *Result) error {
	var err error
	if one.Namespace, err = r.World.Namespace(ctx); err != nil {
		return err
	}
	one.script = script.New(one.Namespace)
	r.World.Stage.Play(one.script)
	r.parked = append(r.parked, one)
	one.script.Arm()
	if err := r.await(ctx, one.Namespace, classQuiet, scenario.ClassReady); err != nil {
		return err
	}
	one.class, _ = r.World.Recorder.Now(one.Namespace)
	return scenario.Create(*one.Scenario.Before)(ctx, r.target(one.Namespace))
}

// strike changes all Clusters while some cannot be reached.
func (r *Runner) strike(ctx context.Context, all, parted []*Result) error {
	var homes []string
	for _, one := range parted {
		homes = append(homes, one.Namespace)
		one.Happened++
	}
	views := r.World.Stage.Views()
	views.Begin(script.Fault{Do: script.Blind, For: outage, On: request.Kind{Workload: true}}, homes...)
	defer views.Clear()
	begin := time.Now()
	for _, one := range all {
		if err := r.change(ctx, one); err != nil {
			return err
		}
	}
	done := func(some []*Result) error {
		for _, one := range some {
			err := r.await(ctx, one.Namespace, 0, one.Scenario.Done...)
			one.Duration = time.Since(begin)
			if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
				return problem
			}
			if err != nil {
				one.violate("it gets there", err.Error())
			}
		}
		return nil
	}
	if err := done(all[len(parted):]); err != nil {
		return err
	}
	views.Clear()
	if err := done(parted); err != nil {
		return err
	}
	return r.calm(ctx, all)
}

// calm waits until no Cluster of a fleet changes any more.
func (r *Runner) calm(ctx context.Context, all []*Result) error {
	for i, one := range all {
		still := time.Duration(0)
		if i == 0 {
			still = aftermath // That is time for the others, too.
		}
		if err := r.await(ctx, one.Namespace, still, one.Scenario.Done...); err != nil {
			one.violate("it gets there", err.Error())
		}
		one.Records = one.script.Records()
	}
	return ctx.Err()
}
