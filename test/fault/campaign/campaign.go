package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

// Campaign is many runs.
type Campaign struct {
	// Root is the root of the repository, Dir a folder for data and logs.
	Root, Dir string
	// Scenarios and Families are combined, each with each.
	Scenarios []scenario.Scenario
	Families  []Family
	// Case is the only one to run, as Case.Replay writes it. Empty: those of Scenarios and Families.
	Case string
	// Most bounds the runs of each scenario and family: they are drawn by Seed. 0: all of them.
	Most int
	// Seed decides which runs are made, and in which order.
	Seed uint64
	// Fleet is how many Clusters there are in the run in which 30 % of them cannot be reached. 0: that is not made.
	Fleet int
	// Part is which of so many Parts of the runs are made, counted from 1. 0 of 0: all of them.
	Part, Parts int
	// World sets the ports of this Campaign apart from those of others on this machine.
	World int
	// Until is when no further run is begun. Zero: no limit.
	Until time.Time
	// Batch is how many runs are settled together, and Rest how long nothing may be written then.
	Batch int
	Rest  time.Duration
	// Out gets a line for each run.
	Out io.Writer
}

// Run makes all runs, and returns what came of them. With an error, that is what came of those that were made.
func (c *Campaign) Run(ctx context.Context) ([]*Result, error) {
	plan := *c
	if c.Case != "" {
		one, err := ParseCase(c.Case)
		if err != nil {
			return nil, err
		}
		plan.Scenarios, plan.Most = []scenario.Scenario{one.Scenario}, 0
		plan.Families = []Family{{
			Name: one.Family, Standby: slices.ContainsFunc(one.Faults, func(f script.Fault) bool { return f.Do == script.Suspend }),
			Faults: func([]script.Record, uint64) [][]script.Fault { return [][]script.Fault{one.Faults} },
		}}
	}
	var results []*Result
	left := len(plan.Families)
	for _, standby := range []bool{false, true} {
		families := slices.DeleteFunc(slices.Clone(plan.Families), func(f Family) bool { return f.Standby != standby })
		if len(families) == 0 && (standby || len(plan.Families) > 0) {
			continue
		}
		world := plan
		world.Until = share(plan.Until, len(families), left)
		left -= len(families)
		made, err := world.in(ctx, standby, families)
		results = append(results, made...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// in makes the runs that take place in a World with or without replicas of managers.
func (c *Campaign) in(ctx context.Context, standby bool, families []Family) (results []*Result, err error) {
	dir := filepath.Join(c.Dir, map[bool]string{false: "single", true: "replicas"}[standby])
	w, err := world.Start(ctx, world.Options{Root: c.Root, Dir: dir, Standby: standby, Ports: c.ports()})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	r := &Runner{World: w, Rest: c.Rest}
	for i, s := range c.Scenarios {
		one := *c
		one.Until = share(c.Until, 1, len(c.Scenarios)-i)
		made, err := one.scenario(ctx, r, s, families)
		results = append(results, made...)
		if err != nil {
			return results, err
		}
	}
	if standby || c.Fleet == 0 {
		return results, nil
	}
	made, err := r.Fleet(ctx, c.Fleet)
	results = append(results, made...)
	if err != nil {
		return results, err
	}
	return results, c.settle(ctx, r, results)
}

func (c *Campaign) scenario(ctx context.Context, r *Runner, s scenario.Scenario, families []Family) ([]*Result, error) {
	if c.over() {
		return nil, nil
	}
	calm, err := r.Run(ctx, Case{Scenario: s}, nil)
	results := []*Result{calm}
	if err == nil {
		err = r.Settle(ctx)
	}
	c.tell(calm)
	if err != nil {
		return results, err
	}
	cases := c.cases(s, calm, families)
	fmt.Fprintf(c.Out, "%s: %d runs to make\n", s.Name, len(cases))
	for _, one := range cases {
		if c.over() {
			break
		}
		result, err := r.Run(ctx, one, calm.Shape)
		results = append(results, result)
		if err != nil {
			return results, err
		}
		if len(r.parked) >= c.Batch {
			if err := c.settle(ctx, r, results); err != nil {
				return results, err
			}
		}
	}
	return results, c.settle(ctx, r, results)
}

func (c *Campaign) settle(ctx context.Context, r *Runner, results []*Result) error {
	n := len(r.parked)
	err := r.Settle(ctx)
	for _, result := range results[len(results)-n:] {
		c.tell(result)
	}
	return err
}

// share is when so many parts of all are over, of the time that is left until then.
func share(until time.Time, parts, all int) time.Time {
	if until.IsZero() || all == 0 {
		return until
	}
	return time.Now().Add(time.Until(until) * time.Duration(parts) / time.Duration(all))
}

func (c *Campaign) over() bool { return !c.Until.IsZero() && time.Now().After(c.Until) }

// cases are the runs of a scenario.
func (c *Campaign) cases(s scenario.Scenario, calm *Result, families []Family) []Case {
	var all []Case
	for _, family := range families {
		var some []Case
		for _, f := range family.Faults(calm.Records, c.Seed) {
			some = append(some, Case{Scenario: s, Family: family.Name, Faults: f})
		}
		some = slices.DeleteFunc(some, func(one Case) bool { return !c.has(one) })
		if c.Most > 0 {
			c.shuffle(some)
		}
		if c.Most > 0 && len(some) > c.Most {
			some = some[:c.Most]
		}
		all = append(all, some...)
	}
	if !c.Until.IsZero() {
		c.shuffle(all) // Whatever there is no time for, it is not all of one family.
	}
	return all
}

// has reports whether a run belongs to this part of all.
func (c *Campaign) has(one Case) bool {
	return c.Parts < 2 || digest(one.Replay())%uint64(c.Parts) == uint64(c.Part-1) // Neither is negative.
}

// ports are where the workload clusters of this Campaign listen.
func (c *Campaign) ports() string {
	const first, each = 20000, 1000
	return fmt.Sprintf("%d-%d", first+c.World*each, first+(c.World+1)*each-1)
}

// shuffle puts runs into an order that the seed decides: where a run comes does not depend on which others there are, as the
// calm run need not have the same writes each time.
func (c *Campaign) shuffle(cases []Case) {
	place := func(one Case) uint64 { return rand.New(rand.NewPCG(c.Seed, digest(one.Replay()))).Uint64() } //nolint:gosec // Runs have to be repeatable.
	slices.SortFunc(cases, func(a, b Case) int { return cmp.Compare(place(a), place(b)) })
}

func (c *Campaign) tell(r *Result) {
	verdict := "ok"
	if len(r.Violations) > 0 {
		verdict = "BROKEN"
	}
	line := &strings.Builder{}
	fmt.Fprintf(line, "%-6s %s %5.1fs %d writes, %d of %d faults: %s\n", verdict, r.Namespace, r.Duration.Seconds(), len(r.Records), r.Happened, len(r.Faults), r.Replay())
	for _, v := range r.Violations {
		fmt.Fprintln(line, "      ", v)
	}
	fmt.Fprint(c.Out, line.String())
}
