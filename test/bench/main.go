// Command bench measures what making clusters costs: writes and reads at the API server, CPU and memory of
// the managers, and time. The managers run as processes of their own against an API server that runs in
// another, with in-memory infrastructure that starts at once, so that only our own work is measured.
//
//	go run ./test/bench                                  # the whole table
//	go run ./test/bench --check test/bench/baseline.json # and fail when writes per cluster rise by 5 %
//
// Requests are counted by the API server (apiserver_request_total): POST, PUT, PATCH, APPLY and DELETE are
// writes, events and dry runs included; GET and LIST are reads; leases and this program's own reads are
// left out.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scenario is one row of the table.
type scenario struct {
	Name                    string
	Clusters                int
	ControlPlanes, Workers  int
	OneAtATime              bool
	CompareWritesToBaseline bool
}

func scenarios(clusters int) []scenario {
	return []scenario{
		{Name: "1+1, one at a time", Clusters: 5, ControlPlanes: 1, Workers: 1, OneAtATime: true, CompareWritesToBaseline: true},
		{Name: fmt.Sprintf("1+1, %d at once", clusters), Clusters: clusters, ControlPlanes: 1, Workers: 1, CompareWritesToBaseline: true},
		{Name: "3+3, 10 at once", Clusters: 10, ControlPlanes: 3, Workers: 3},
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	root := flags.String("root", ".", "root of the project")
	check := flags.String("check", "", "baseline file: fail when writes per cluster are 5 % above it")
	update := flags.Bool("update", false, "write the baseline file anew instead of failing")
	clusters := flags.Int("clusters", 50, "clusters of the row that applies many at once")
	detail := flags.Int("detail", 0, "print this many of the most frequent requests of each row")
	keep := flags.String("keep", "", "folder for data and logs; kept. Default: a temporary one")
	only := flags.String("only", "", "run only rows whose name contains this")
	profiles := flags.Bool("profiles", false, "after each row, write profiles of heap and goroutines of the managers beside their logs, and print what their memory consists of")
	idle := flags.Duration("idle", 0, "afterwards, measure for this long what all clusters cost while nothing happens")
	if err := flags.Parse(args); err != nil {
		return err
	}
	w, err := startWorld(ctx, *root, *keep)
	if err != nil {
		return err
	}
	defer func() { _ = w.stop() }() // Nothing is measured any more.
	var rows []row
	for i, s := range scenarios(*clusters) {
		if !strings.Contains(s.Name, *only) {
			continue
		}
		r, err := w.measure(ctx, s, fmt.Sprintf("b%d-", i))
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		rows = append(rows, r)
		if *profiles {
			if err := w.profile(ctx, os.Stdout, s.Name); err != nil {
				return err
			}
		}
		printDetail(os.Stdout, r, *detail)
	}
	printTable(os.Stdout, rows)
	if *idle > 0 {
		if err := w.idle(ctx, os.Stdout, *idle); err != nil {
			return err
		}
	}
	if *check == "" {
		return nil
	}
	return compare(*check, rows, *update)
}
