package campaign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
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
			Faults: func(*Result, *rand.Rand) [][]script.Fault { return [][]script.Fault{one.Faults} },
		}}
	}
	var results []*Result
	for _, standby := range []bool{false, true} {
		families := slices.DeleteFunc(slices.Clone(plan.Families), func(f Family) bool { return f.Standby != standby })
		if len(families) == 0 && (standby || len(plan.Families) > 0) {
			continue
		}
		made, err := plan.in(ctx, standby, families)
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
	w, err := world.Start(ctx, world.Options{Root: c.Root, Dir: dir, Standby: standby})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	r := &Runner{World: w, Rest: c.Rest}
	for _, s := range c.Scenarios {
		made, err := c.scenario(ctx, r, s, families)
		results = append(results, made...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
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
	for _, one := range c.cases(s, calm, families) {
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

func (c *Campaign) over() bool { return !c.Until.IsZero() && time.Now().After(c.Until) }

// cases are the runs of a scenario.
func (c *Campaign) cases(s scenario.Scenario, calm *Result, families []Family) []Case {
	var all []Case
	for _, family := range families {
		random := rand.New(rand.NewPCG(c.Seed, 0))
		faults := family.Faults(calm, random)
		if c.Most > 0 || !c.Until.IsZero() {
			random.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
		}
		if c.Most > 0 && len(faults) > c.Most {
			faults = faults[:c.Most]
		}
		for _, f := range faults {
			all = append(all, Case{Scenario: s, Family: family.Name, Faults: f})
		}
	}
	return all
}

func (c *Campaign) tell(r *Result) {
	verdict := "ok"
	if len(r.Violations) > 0 {
		verdict = "BROKEN"
	}
	fmt.Fprintf(c.Out, "%-6s %s %5.1fs %d writes, %d of %d faults: %s\n", verdict, r.Namespace, r.Duration.Seconds(), len(r.Records), r.Happened, len(r.Faults), r.Replay())
	for _, v := range r.Violations {
		fmt.Fprintln(c.Out, "      ", v)
	}
}
