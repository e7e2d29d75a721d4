package campaign

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
)

// Campaign is many runs.
type Campaign struct {
	// Runner makes them.
	Runner *Runner
	// Scenarios and Families are combined, each with each.
	Scenarios []scenario.Scenario
	Families  []Family
	// Most bounds the runs of each scenario and family: they are drawn by Seed. 0: all of them.
	Most int
	// Seed decides which runs are made, and in which order.
	Seed uint64
	// Until is when no further run is begun. Zero: no limit.
	Until time.Time
	// Batch is how many runs are settled together.
	Batch int
	// Out gets a line for each run.
	Out io.Writer
}

// Run makes all runs, and returns what came of them. With an error, that is what came of those that were made.
func (c *Campaign) Run(ctx context.Context) ([]*Result, error) {
	var results []*Result
	for _, s := range c.Scenarios {
		made, err := c.scenario(ctx, s)
		results = append(results, made...)
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

func (c *Campaign) scenario(ctx context.Context, s scenario.Scenario) ([]*Result, error) {
	if c.over() {
		return nil, nil
	}
	calm, err := c.Runner.Run(ctx, Case{Scenario: s}, nil)
	results := []*Result{calm}
	if err == nil {
		err = c.Runner.Settle(ctx)
	}
	c.tell(calm)
	if err != nil {
		return results, err
	}
	for _, one := range c.cases(s, calm) {
		if c.over() {
			break
		}
		result, err := c.Runner.Run(ctx, one, calm.Shape)
		results = append(results, result)
		if err != nil {
			return results, err
		}
		if len(c.Runner.parked) >= c.Batch {
			if err := c.settle(ctx, results); err != nil {
				return results, err
			}
		}
	}
	return results, c.settle(ctx, results)
}

func (c *Campaign) settle(ctx context.Context, results []*Result) error {
	n := len(c.Runner.parked)
	err := c.Runner.Settle(ctx)
	for _, result := range results[len(results)-n:] {
		c.tell(result)
	}
	return err
}

func (c *Campaign) over() bool { return !c.Until.IsZero() && time.Now().After(c.Until) }

// cases are the runs of a scenario.
func (c *Campaign) cases(s scenario.Scenario, calm *Result) []Case {
	var all []Case
	for _, family := range c.Families {
		random := rand.New(rand.NewPCG(c.Seed, 0))
		faults := family.Faults(calm)
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

// Replay makes the calm run of one case, and then the case itself.
func (c *Campaign) Replay(ctx context.Context, text string) ([]*Result, error) {
	one, err := ParseCase(text)
	if err != nil {
		return nil, err
	}
	replay := *c
	replay.Scenarios, replay.Most = []scenario.Scenario{one.Scenario}, 0
	replay.Families = []Family{{Name: one.Family, Faults: func(*Result) [][]script.Fault { return [][]script.Fault{one.Faults} }}}
	return replay.Run(ctx)
}
