package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/invariant"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// partitionedPercent is the percentage of unreachable workload clusters in a fleet.
const partitionedPercent = 30

// outage limits a fleet's outage, which ends earlier when the other Clusters have converged.
const outage = 10 * time.Minute

// Fleet creates many Clusters, and changes all of them while some workload clusters are unresponsive. The others must
// converge during the outage, and those when they respond again. Rules about etcd members are not checked.
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
		if err := r.createFleetCluster(ctx, one); err != nil {
			return fmt.Errorf("preparing the fleet: %w", err)
		}
	}
	before := make([]history.Timeline, len(all))
	for i, one := range all {
		if err := r.waitFor(ctx, one.Namespace, quietPeriod, scenario.Ready(*one.Scenario.Before)); err != nil {
			return fmt.Errorf("preparing the fleet: namespace %s: %w", one.Namespace, err)
		}
		if err := r.World.Recorder.Complete(ctx, one.Namespace); err != nil {
			return err
		}
		before[i] = r.World.Recorder.Timeline(one.Namespace)
	}
	partitioned := all[:len(all)*partitionedPercent/100]
	if err := r.disrupt(ctx, all, partitioned); err != nil {
		return err
	}
	for i, one := range all {
		if err := r.judge(ctx, one, invariant.Run{Scenario: one.Scenario, Before: before[i], Unwatched: true}); err != nil {
			return err
		}
	}
	return nil
}

// createFleetCluster creates one Cluster of a fleet.
func (r *Runner) createFleetCluster(ctx context.Context, one *Result) error {
	var err error
	if one.Namespace, err = r.World.Namespace(ctx); err != nil {
		return err
	}
	one.script = script.New(one.Namespace)
	r.World.Scripts.Activate(one.script)
	r.pending = append(r.pending, one)
	one.script.Arm()
	if err := r.waitFor(ctx, one.Namespace, classQuietPeriod, scenario.ClassReady); err != nil {
		return err
	}
	one.class, _ = r.World.Recorder.Now(one.Namespace)
	return scenario.Create(*one.Scenario.Before)(ctx, r.target(one.Namespace))
}

// disrupt changes all Clusters while some workload clusters are unresponsive.
func (r *Runner) disrupt(ctx context.Context, all, partitioned []*Result) error {
	var namespaces []string
	for _, one := range partitioned {
		namespaces = append(namespaces, one.Namespace)
		one.Injected++
	}
	ongoing := r.World.Scripts.Ongoing()
	ongoing.Begin(script.Fault{Do: script.Blind, For: outage, On: script.Kind{Workload: true}}, namespaces...)
	defer ongoing.Clear()
	begin := time.Now()
	for _, one := range all {
		if err := r.change(ctx, one); err != nil {
			return err
		}
	}
	done := func(some []*Result) error {
		for _, one := range some {
			err := r.waitFor(ctx, one.Namespace, 0, one.Scenario.Done...)
			one.Duration = time.Since(begin)
			if problem := errors.Join(ctx.Err(), r.World.Err()); problem != nil {
				return problem
			}
			if err != nil {
				one.violate("the Cluster converges", err.Error())
			}
		}
		return nil
	}
	if err := done(all[len(partitioned):]); err != nil {
		return err
	}
	ongoing.Clear()
	if err := done(partitioned); err != nil {
		return err
	}
	return r.waitUntilQuiet(ctx, all)
}

// waitUntilQuiet returns when the Clusters of a fleet no longer change.
func (r *Runner) waitUntilQuiet(ctx context.Context, all []*Result) error {
	for i, one := range all {
		still := time.Duration(0)
		if i == 0 {
			still = longQuietPeriod // The others become quiet in the same time.
		}
		if err := r.waitFor(ctx, one.Namespace, still, one.Scenario.Done...); err != nil {
			one.violate("the Cluster converges", err.Error())
		}
		one.Records = one.script.Records()
	}
	return ctx.Err()
}
