// Command fault runs Clusters through their lives while everything goes wrong: managers are killed after any write,
// answers are lost, watches freeze. It prints what was tried and what broke, and exits with 1 if anything did.
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
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/report"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		os.Exit(1)
	}
}

// none chooses nothing from a list.
const none = "none"

// options are the flags.
type options struct {
	root, keep       string
	scenarios        string
	families, replay string
	most, batch      int
	fleet, worlds    int
	part             string
	seed             uint64
	budget, rest     time.Duration
}

func parse(args []string) (*options, error) {
	o := &options{}
	flags := flag.NewFlagSet("fault", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "root of the project")
	flags.StringVar(&o.keep, "keep", "", "folder for data and logs. Default: a temporary one")
	flags.StringVar(&o.scenarios, "scenario", "", "comma-separated names of scenarios. \"none\": the fleet only. Default: all")
	flags.StringVar(&o.families, "family", "", "comma-separated names of kinds of faults. \"none\": calm runs only. Default: all")
	flags.StringVar(&o.replay, "replay", "", "make this one run, as an earlier one printed it")
	flags.IntVar(&o.most, "most", 0, "make at most this many runs of each scenario and kind of faults, drawn by --seed. 0: all")
	flags.Uint64Var(&o.seed, "seed", 1, "decides which runs are drawn, and their order")
	flags.DurationVar(&o.budget, "budget", 0, "begin no run after this time. 0: no limit")
	flags.DurationVar(&o.rest, "rest", time.Minute, "how long nothing may be written when all is done")
	flags.IntVar(&o.fleet, "fleet", 50, "how many Clusters there are in a last run in which 30 % of them cannot be reached. 0: it is not made")
	flags.IntVar(&o.worlds, "worlds", 1, "how many management clusters share the runs, side by side: one needs about half a core")
	flags.StringVar(&o.part, "part", "1/1", "which part of the runs is made: 2/3 is the second of three, which are equal but for chance and have no run in common")
	flags.IntVar(&o.batch, "batch", 10, "how many runs rest at the same time")
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
	families, err := chosen(campaign.Families(), func(f campaign.Family) string { return f.Name }, o.families)
	if err != nil {
		return err
	}
	c := &campaign.Campaign{
		Root: o.root, Dir: o.keep, Rest: o.rest, Scenarios: scenarios, Families: families, Case: o.replay,
		Most: o.most, Seed: o.seed, Batch: o.batch, Out: os.Stdout,
	}
	if _, err := fmt.Sscanf(o.part, "%d/%d", &c.Part, &c.Parts); err != nil || c.Part < 1 || c.Part > c.Parts {
		return fmt.Errorf("--part %q is not one of so many, such as 2/3", o.part)
	}
	if o.replay == "" && (o.scenarios == "" || o.scenarios == none) {
		c.Fleet = o.fleet
	}
	if o.budget > 0 {
		c.Until = time.Now().Add(o.budget)
	}
	fmt.Printf("seed %d, logs are in %s\n", o.seed, o.keep)
	results, err := inWorlds(ctx, c, o.worlds)
	violations, printed := report.Print(os.Stdout, results)
	if violations > 0 {
		err = errors.Join(err, fmt.Errorf("%d violations", violations))
	}
	return errors.Join(err, printed)
}

// inWorlds shares the scenarios of a Campaign between several worlds, side by side, and returns what came of all of them. The
// fleet has a world of its own after that: it needs the machine for itself.
func inWorlds(ctx context.Context, c *campaign.Campaign, worlds int) ([]*campaign.Result, error) {
	worlds = min(worlds, len(c.Scenarios))
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
		part := *c
		part.World, part.Fleet, part.Out, part.Scenarios = i, 0, out, nil
		for j := i; j < len(c.Scenarios); j += worlds {
			part.Scenarios = append(part.Scenarios, c.Scenarios[j])
		}
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
	made, err := fleet.Run(ctx)
	return append(all.results, made...), err
}

// lines lets several write whole lines to one place.
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

// chosen are those whose names are in a comma-separated list, or all if it is empty.
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
			return nil, fmt.Errorf("there is no %q", want)
		}
	}
	return found, nil
}
