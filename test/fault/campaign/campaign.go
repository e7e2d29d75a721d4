package campaign

import (
	"bufio"
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

	"k8s.io/apimachinery/pkg/util/sets"

	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/script"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

// Campaign is many runs.
type Campaign struct {
	// Root is the root of the repository, Dir a folder for data and logs.
	Root, Dir string
	// Scenarios and Families are combined.
	Scenarios []scenario.Scenario
	Families  []Family
	// Case is the only one to run, as Case.Replay writes it. Empty: those of Scenarios and Families.
	Case string
	// Most limits the runs of each scenario and family, which Seed selects. 0: no limit.
	Most int
	// Seed determines which runs are selected, and their order.
	Seed uint64
	// Fleet is the number of Clusters in the run in which 30 % of them are unreachable. 0: skip that run.
	Fleet int
	// Part selects one of Parts shares of the runs, counted from 1. 0 of 0: all runs.
	Part, Parts int
	// Skip are runs that need not be executed again, as Case.Replay writes them.
	Skip sets.Set[string]
	// World is the index of this Campaign among those that run in parallel on this machine. It determines the ports.
	World int
	// Until is when no further run is started. Zero: no limit.
	Until time.Time
	// Batch is how many runs are finished together, and Rest how long nothing may be written then.
	Batch int
	Rest  time.Duration
	// Out gets a line for each run.
	Out io.Writer
}

// Run executes all runs and returns their results. With an error, it returns the results so far.
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
	left := len(plan.Families) * len(plan.Scenarios)
	for _, k := range kinds() {
		world := plan
		world.Scenarios = slices.DeleteFunc(slices.Clone(plan.Scenarios), func(s scenario.Scenario) bool { return kindOf(s) != k })
		for _, standby := range []bool{false, true} {
			families := slices.DeleteFunc(slices.Clone(plan.Families), func(f Family) bool { return f.Standby != standby })
			if world.isEmpty(families, standby, k) {
				continue
			}
			runs := len(families) * len(world.Scenarios)
			world.Until = share(plan.Until, runs, left)
			left -= runs
			more, err := world.in(ctx, standby, k, families)
			results = append(results, more...)
			if err != nil {
				return results, err
			}
		}
	}
	return results, nil
}

// kind is what scenarios may require of a World that others cannot share, and the prefix of its folder.
type kind string

const (
	common       kind = ""
	withOperator kind = "operator-"
	withBrake    kind = "braked-"
)

func kinds() []kind { return []kind{common, withBrake, withOperator} }

// kindOf returns the kind of World of a scenario.
func kindOf(s scenario.Scenario) kind {
	switch {
	case s.Operator:
		return withOperator
	case s.Braked:
		return withBrake
	}
	return common
}

// isEmpty reports whether there are no runs for a World.
func (c *Campaign) isEmpty(families []Family, standby bool, k kind) bool {
	if len(families) == 0 && (standby || len(c.Families) > 0) {
		return true
	}
	return len(c.Scenarios) == 0 && (standby || k != common || c.Fleet == 0)
}

// in executes the runs that need a World of a kind, with or without standby replicas of managers.
func (c *Campaign) in(ctx context.Context, standby bool, k kind, families []Family) (results []*Result, err error) {
	dir := string(k) + map[bool]string{false: "single", true: "replicas"}[standby]
	w, err := world.Start(ctx, world.Options{
		Root: c.Root, Dir: filepath.Join(c.Dir, dir), Standby: standby, Ports: c.ports(),
		Operator: k == withOperator, Braked: k == withBrake,
		Backups: slices.ContainsFunc(c.Scenarios, func(s scenario.Scenario) bool { return s.Backups }),
		IPAM:    slices.ContainsFunc(c.Scenarios, func(s scenario.Scenario) bool { return s.IPAM }),
		Hooks:   slices.ContainsFunc(c.Scenarios, func(s scenario.Scenario) bool { return s.Hooks }),
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	r := &Runner{World: w, Rest: c.Rest}
	for i, s := range c.Scenarios {
		one := *c
		one.Until = share(c.Until, 1, len(c.Scenarios)-i)
		more, err := one.scenario(ctx, r, s, families)
		results = append(results, more...)
		if err != nil {
			return results, err
		}
	}
	if standby || k != common || c.Fleet == 0 {
		return results, nil
	}
	more, err := r.Fleet(ctx, c.Fleet)
	results = append(results, more...)
	if err != nil {
		return results, err
	}
	return results, c.finish(ctx, r, results)
}

func (c *Campaign) scenario(ctx context.Context, r *Runner, s scenario.Scenario, families []Family) ([]*Result, error) {
	if c.timeIsUp() {
		return nil, nil
	}
	baseline, err := r.Run(ctx, Case{Scenario: s}, nil)
	results := []*Result{baseline}
	if err == nil {
		err = r.Finish(ctx)
	}
	c.print(baseline)
	if err != nil {
		return results, err
	}
	cases := c.cases(s, baseline, families)
	fmt.Fprintf(c.Out, "%s: %d runs planned\n", s.Name, len(cases))
	for _, one := range cases {
		if c.timeIsUp() {
			break
		}
		result, err := r.Run(ctx, one, baseline.Shape)
		results = append(results, result)
		if err != nil {
			return results, err
		}
		if len(r.pending) >= c.Batch || s.Operator { // Its runs have the same objects.
			if err := c.finish(ctx, r, results); err != nil {
				return results, err
			}
		}
	}
	return results, c.finish(ctx, r, results)
}

func (c *Campaign) finish(ctx context.Context, r *Runner, results []*Result) error {
	n := len(r.pending)
	err := r.Finish(ctx)
	for _, result := range results[len(results)-n:] {
		c.print(result)
	}
	return err
}

// share returns when parts out of all shares of the remaining time have passed.
func share(until time.Time, parts, all int) time.Time {
	if until.IsZero() || all == 0 {
		return until
	}
	return time.Now().Add(time.Until(until) * time.Duration(parts) / time.Duration(all))
}

func (c *Campaign) timeIsUp() bool { return !c.Until.IsZero() && time.Now().After(c.Until) }

// cases returns the runs of a scenario.
func (c *Campaign) cases(s scenario.Scenario, baseline *Result, families []Family) []Case {
	var all []Case
	for _, family := range families {
		if family.For != nil && !family.For(s) {
			continue
		}
		var some []Case
		for _, f := range family.Faults(baseline.Records, c.Seed) {
			some = append(some, Case{Scenario: s, Family: family.Name, Faults: f})
		}
		some = slices.DeleteFunc(some, func(one Case) bool { return !c.includes(one) })
		if c.Most > 0 {
			c.shuffle(some)
		}
		if c.Most > 0 && len(some) > c.Most {
			some = some[:c.Most]
		}
		all = append(all, some...)
	}
	if !c.Until.IsZero() {
		c.shuffle(all) // The runs for which no time is left must not all be of one family.
	}
	return all
}

// includes reports whether a run is in this Campaign's part and not skipped.
func (c *Campaign) includes(one Case) bool {
	replay := one.Replay()
	return !c.Skip.Has(replay) && (c.Parts < 2 || digest(replay)%uint64(c.Parts) == uint64(c.Part-1)) // Neither is negative.
}

// Share returns the n-th of several disjoint Campaigns, counted from 0, that together execute the runs of this one: each
// has other scenarios if there are enough, otherwise a part of the runs of each.
func (c *Campaign) Share(n, of int) *Campaign {
	share := *c
	if len(c.Scenarios) < of {
		share.Part, share.Parts = max(c.Part, 1)+n*max(c.Parts, 1), max(c.Parts, 1)*of
		return &share
	}
	share.Scenarios = nil
	for i := n; i < len(c.Scenarios); i += of {
		share.Scenarios = append(share.Scenarios, c.Scenarios[i])
	}
	return &share
}

// ports is the range of ports for the API servers of this Campaign's workload clusters.
func (c *Campaign) ports() string {
	const first, each = 20000, 1000
	return fmt.Sprintf("%d-%d", first+c.World*each, first+(c.World+1)*each-1)
}

// shuffle sorts runs in an order that the seed determines. The relative order of two runs does not depend on the others,
// because the writes of the baseline run vary slightly.
func (c *Campaign) shuffle(cases []Case) {
	rank := func(one Case) uint64 {
		return rand.New(rand.NewPCG(c.Seed, digest(one.Replay()))).Uint64() //nolint:gosec // Runs must be repeatable.
	}
	slices.SortFunc(cases, func(a, b Case) int { return cmp.Compare(rank(a), rank(b)) })
}

// Executed reads the output of earlier Campaigns, and returns their runs without violations, as Case.Replay writes them.
func Executed(output io.Reader) (sets.Set[string], error) {
	executed := sets.New[string]()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if _, replay, found := strings.Cut(lines.Text(), " faults: "); found && strings.HasPrefix(lines.Text(), passed+" ") {
			executed.Insert(replay)
		}
	}
	return executed, lines.Err()
}

// passed is the verdict on a run without violations.
const passed = "ok"

func (c *Campaign) print(r *Result) {
	verdict := passed
	if len(r.Violations) > 0 {
		verdict = "FAILED"
	}
	line := &strings.Builder{}
	fmt.Fprintf(line, "%-6s %s %5.1fs %d writes, %d of %d faults: %s\n",
		verdict, r.Namespace, r.Duration.Seconds(), len(r.Records), r.Injected, len(r.Faults), r.Replay())
	for _, v := range r.Violations {
		fmt.Fprintln(line, "      ", v)
	}
	fmt.Fprint(c.Out, line.String())
}
