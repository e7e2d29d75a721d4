// Command fault creates, changes and deletes Clusters while it injects faults: it kills managers after any write, loses
// responses, freezes watches. It prints the runs and the violated invariants, and exits with 1 if there are any.
//
//	go run ./test/fault                                       # everything
//	go run ./test/fault --scenario create-1x1 --family kill   # some of it
//	go run ./test/fault --most 5 --seed 7                     # a sample
//	go run ./test/fault --replay 'create-1x1/capim-manager:patch:inmemorymachines#1=kill-after'
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // Of the extension; its calls are recorded.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		os.Exit(1)
	}
}

// none selects nothing from a list.
const none = "none"

// options are the flags.
type options struct {
	root, keep       string
	scenarios        string
	families, replay string
	most, batch      int
	fleet, worlds    int
	part, skip       string
	seed             uint64
	budget, rest     time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("fault", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "root of the project")
	flags.StringVar(&o.keep, "keep", "", "folder for data and logs. Defaults to a temporary one")
	flags.StringVar(&o.scenarios, "scenario", "", "comma-separated names of scenarios, or \"none\" for the fleet only. Defaults to all")
	flags.StringVar(&o.families, "family", "",
		"comma-separated names of kinds of faults, or \"none\" for runs without faults only. Defaults to all")
	flags.StringVar(&o.replay, "replay", "", "repeat one run, as printed by an earlier one")
	flags.IntVar(&o.most, "most", 0, "maximum number of runs per scenario and kind of faults, selected by --seed (0: no limit)")
	flags.Uint64Var(&o.seed, "seed", 1, "determines which runs are selected, and their order")
	flags.DurationVar(&o.budget, "budget", 0, "start no more runs after this time (0: no limit)")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long managers must not write after the runs")
	flags.IntVar(&o.fleet, "fleet", 50, "number of Clusters in a final run in which 30 % of them are unresponsive (0: skip it)")
	flags.IntVar(&o.worlds, "worlds", 1, "number of management clusters that execute runs in parallel: one needs about half a core")
	flags.StringVar(&o.part, "part", "1/1", "share of the runs to execute: 2/3 is the second of three disjoint shares of about the same size")
	flags.StringVar(&o.skip, "skip", "", "file with the output of earlier campaigns, whose runs without violations are skipped")
	flags.IntVar(&o.batch, "batch", 10, "number of runs that --rest waits for together")
	return o, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.keep == "" {
		if o.keep, err = os.MkdirTemp("", "fault-"); err != nil {
			return err
		}
	}
	scenarios, err := chosen(scenario.All(), func(s scenario.Scenario) string { return s.Name }, o.scenarios)
	if err != nil {
		return err
	}
	if o.scenarios == "" {
		if scenarios, err = available(ctx, scenarios, o.root); err != nil {
			return err
		}
	}
	families, err := chosen(campaign.Families(), func(f campaign.Family) string { return f.Name }, o.families)
	if err != nil {
		return err
	}
	c := &campaign.Campaign{
		Root: o.root, Dir: o.keep, Rest: o.rest, Scenarios: scenarios, Families: families, Case: o.replay,
		Most: o.most, Seed: o.seed, Batch: o.batch, Out: os.Stdout,
	}
	if _, err := fmt.Sscanf(o.part, "%d/%d", &c.Part, &c.Parts); err != nil || c.Part < 1 || c.Part > c.Parts {
		return fmt.Errorf("--part %q is invalid: it must be like 2/3, from 1/3 to 3/3", o.part)
	}
	if o.skip != "" {
		if c.Skip, err = executed(o.skip); err != nil {
			return err
		}
	}
	if o.replay == "" && (o.scenarios == "" || o.scenarios == none) {
		c.Fleet = o.fleet
	}
	if o.budget > 0 {
		c.Until = time.Now().Add(o.budget)
	}
	fmt.Printf("Seed %d, logs in %s\n", o.seed, o.keep)
	results, err := inWorlds(ctx, c, o.worlds)
	violations, printed := campaign.Report(os.Stdout, results)
	if violations > 0 {
		err = errors.Join(err, fmt.Errorf("%d violations", violations))
	}
	return errors.Join(err, printed)
}

// available returns the scenarios whose reference data are present, and prints why others are left out.
func available(ctx context.Context, all []scenario.Scenario, root string) ([]scenario.Scenario, error) {
	err := scenario.CheckRecords(ctx, root)
	if errors.Is(err, recorded.ErrAbsent) {
		fmt.Printf("Without scenarios of recorded Clusters: %v\n", err)
		return slices.DeleteFunc(all, func(s scenario.Scenario) bool { return s.Recorded }), nil
	}
	return all, err
}

// executed reads the runs in a file with the output of earlier campaigns.
func executed(file string) (sets.Set[string], error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--skip: %w", err)
	}
	defer func() { _ = f.Close() }()
	return campaign.Executed(f)
}

// inWorlds distributes a Campaign to several worlds, in parallel, and returns all results. The fleet runs after that, in its own world,
// because it needs the whole machine.
func inWorlds(ctx context.Context, c *campaign.Campaign, worlds int) ([]*campaign.Result, error) {
	if worlds < 2 || c.Case != "" {
		return c.Run(ctx)
	}
	type outcome struct {
		results []*campaign.Result
		err     error
	}
	outcomes := make([]outcome, worlds)
	out := &lines{to: c.Out}
	group := sync.WaitGroup{}
	for i := range worlds {
		part := c.Share(i, worlds)
		part.World, part.Fleet, part.Out = i, 0, out
		part.Dir = filepath.Join(c.Dir, "world-"+strconv.Itoa(i))
		group.Go(func() { outcomes[i].results, outcomes[i].err = part.Run(ctx) })
	}
	group.Wait()
	all := outcome{}
	for _, one := range outcomes {
		all.results, all.err = append(all.results, one.results...), errors.Join(all.err, one.err)
	}
	if c.Fleet == 0 || all.err != nil {
		return all.results, all.err
	}
	fleet := *c
	fleet.Scenarios, fleet.Families, fleet.Dir = nil, nil, filepath.Join(c.Dir, "fleet")
	more, err := fleet.Run(ctx)
	return append(all.results, more...), err
}

// lines is an io.Writer for whole lines from concurrent writers.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(line)
}

// chosen returns the elements whose names are in a comma-separated list, or all if it is empty.
func chosen[T any](all []T, name func(T) string, list string) ([]T, error) {
	switch list {
	case "":
		return all, nil
	case none:
		return nil, nil
	}
	var found []T
	for want := range strings.SplitSeq(list, ",") {
		n := len(found)
		for _, one := range all {
			if name(one) == want {
				found = append(found, one)
			}
		}
		if len(found) == n {
			return nil, fmt.Errorf("unknown name %q", want)
		}
	}
	return found, nil
}
