// Command bench measures the cost of creating clusters: writes and reads at the API server, CPU and memory of the managers,
// and time. The managers and the API server run as separate processes, with in-memory infrastructure that starts
// immediately, so that only the managers' own work is measured.
//
//	go run ./test/bench                                  # the whole table
//	go run ./test/bench --check test/bench/baseline.json # and fail if writes rise by 5 %
//
// The API server counts requests (apiserver_request_total): POST, PUT, PATCH, APPLY and DELETE are writes, including events
// and dry runs; GET and LIST are reads. Leases and this program's own requests do not count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"sigs.k8s.io/cluster-api/test/managers"
)

func main() {
	ctrl.SetLogger(logr.Discard()) // Of the extension.
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
	Delete                  bool // afterwards, as a row of its own
	CompareWritesToBaseline bool
}

func scenarios(clusters int) []scenario {
	return []scenario{
		{Name: "1+1, one at a time", Clusters: 5, ControlPlanes: 1, Workers: 1, OneAtATime: true, CompareWritesToBaseline: true},
		{
			Name:                    fmt.Sprintf("1+1, %d at once", clusters),
			Clusters:                clusters,
			ControlPlanes:           1,
			Workers:                 1,
			Delete:                  true,
			CompareWritesToBaseline: true,
		},
		{Name: "3+3, 10 at once", Clusters: 10, ControlPlanes: 3, Workers: 3},
	}
}

// options are the flags.
type options struct {
	root, check, keep, only string
	store                   string
	update                  bool
	clusters, scale, detail int
	health, workers         int
	resourceSets            int
	describe, overview      int
	initialize, move        int
	operator                int
	backups, backupSize     int
	docker                  int
	verification            string
	extensions              bool
	idle, profiles          time.Duration
}

func parse(args []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "root of the project")
	flags.StringVar(&o.check, "check", "", "baseline file: fail if writes are 5 % above it")
	flags.BoolVar(&o.update, "update", false, "update the baseline file instead of failing")
	flags.IntVar(&o.clusters, "clusters", 50, "number of clusters in the row that creates many at once")
	flags.IntVar(&o.scale, "scale", 0,
		"instead of the table, create this many clusters, a hundred at a time, and print the cost of each hundred")
	flags.IntVar(&o.health, "health", 0, "instead of the table, create this many clusters, "+
		"take the power of a tenth of the workers of each at once, and print the cost of their replacement")
	flags.IntVar(&o.describe, "describe", 0,
		"instead of the table, create a cluster with this many Machines, and print what the commands cost that read it")
	flags.IntVar(&o.overview, "get-clusters", 0, "instead of the table, create this many Clusters, and print what listing them costs")
	flags.IntVar(&o.initialize, "init", 0,
		"instead of the table, turn an empty cluster into a management cluster, this many times, and print what it costs")
	flags.IntVar(&o.operator, "operator", 0, "instead of the table, install six providers with the operator in an empty cluster, "+
		"this many times, and print what it costs; then leave it alone for a minute, or --idle, and fail if it makes requests")
	flags.IntVar(&o.move, "move", 0,
		"instead of the table, create this many clusters, and print what it costs to move them to another management cluster")
	flags.IntVar(&o.backups, "backups", 0, "instead of the table, create this many clusters, back up all of them every minute, "+
		"for two minutes, or --idle, and print what a backup costs")
	flags.IntVar(&o.backupSize, "backup-size", 0,
		"instead of the table, back up a cluster whose etcd has this many MiB, and print what it costs")
	flags.IntVar(&o.docker, "docker", 0, "with --backup-size, the cluster has this many control plane machines of the Docker provider, "+
		"with a real etcd, and what the backup costs its members is printed, too")
	flags.StringVar(&o.verification, "verification", "Restored", "how archives are verified, with --backups and --backup-size")
	flags.BoolVar(&o.extensions, "extensions", false,
		"with a runtime extension that patches the templates of all clusters, and blocks the creation of each once")
	flags.IntVar(&o.workers, "workers", 99, "number of workers of each cluster, with --health")
	flags.IntVar(&o.resourceSets, "resource-sets", 0,
		"instead of the table, create this many clusters, and print what a ClusterResourceSet for all of them costs")
	flags.IntVar(&o.detail, "detail", 0, "number of most frequent requests to print for each row")
	flags.StringVar(&o.keep, "keep", "", "folder for data and logs. Defaults to a temporary one")
	flags.StringVar(&o.store, "store", "v1beta2", "API version in which objects are stored, and Clusters created")
	flags.StringVar(&o.only, "only", "", "run only rows whose name contains this text")
	flags.DurationVar(&o.profiles, "profiles", 0, "write profiles of the managers to the folder of their logs: "+
		"CPU, from the start of each row and for this long, heap and goroutines after it; and print a summary of their memory")
	flags.DurationVar(&o.idle, "idle", 0, "afterwards, measure for this long what all clusters cost while nothing changes")
	return o, flags.Parse(args)
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	switch {
	case o.initialize > 0:
		return initialize(ctx, os.Stdout, o)
	case o.operator > 0:
		return operate(ctx, os.Stdout, o)
	}
	programs := managers.Programs()
	if o.extensions {
		programs = managers.WithExtensions()
	}
	if o.backups+o.backupSize > 0 {
		programs = append(programs, managers.Fleet())
	}
	if o.docker > 0 {
		programs = append(programs, managers.Docker())
	}
	w, err := startWorld(ctx, managers.Options{Root: o.root, Dir: o.keep, Stored: o.store}, programs)
	if err != nil {
		return err
	}
	defer func() { _ = w.stop() }() // Errors no longer affect the results.
	writes := map[string]float64{}
	switch {
	case o.health > 0:
		err = w.health(ctx, os.Stdout, o.health, o.workers)
	case o.backups > 0:
		return w.backups(ctx, os.Stdout, o)
	case o.backupSize > 0 && o.docker > 0:
		return w.backupOfMembers(ctx, os.Stdout, o)
	case o.backupSize > 0:
		return w.backupOf(ctx, os.Stdout, o.backupSize, o.verification)
	case o.resourceSets > 0:
		err = w.resourceSets(ctx, os.Stdout, o.resourceSets)
	case o.move > 0:
		err = w.move(ctx, os.Stdout, o.move)
	case o.describe > 0:
		err = w.describe(ctx, os.Stdout, o.describe)
	case o.overview > 0:
		err = w.overview(ctx, os.Stdout, o.overview)
	case o.extensions:
		err = w.extensions(ctx, os.Stdout, o)
	case o.scale > 0:
		err = w.scale(ctx, os.Stdout, o.scale)
	default:
		writes, err = w.table(ctx, o)
	}
	if err != nil {
		return err
	}
	if o.idle > 0 {
		if err := w.idle(ctx, os.Stdout, o.idle); err != nil {
			return err
		}
	}
	if o.check == "" {
		return nil
	}
	return compare(o.check, writes, o.update)
}

// table prints the table, and a line for the operator. It returns the writes that are compared with the baseline.
func (w *world) table(ctx context.Context, o options) (map[string]float64, error) {
	rows, err := w.rows(ctx, o)
	printTable(os.Stdout, rows)
	if err != nil || !strings.Contains(operatorRow, o.only) {
		return compared(rows), err
	}
	i, err := measureOperator(ctx, o, operatorGlance)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", operatorRow, err)
	}
	printInstallations(os.Stdout, []installation{i}, o.detail)
	writes := compared(rows)
	writes[operatorRow] = float64(i.writes)
	return writes, i.calm()
}

// rows measures the scenarios.
func (w *world) rows(ctx context.Context, o options) ([]row, error) {
	var rows []row
	for i, s := range scenarios(o.clusters) {
		if !strings.Contains(s.Name, o.only) {
			continue
		}
		prefix := fmt.Sprintf("b%d-", i)
		r, err := w.profiled(ctx, o, s, func() (row, error) { return w.measure(ctx, s, prefix) })
		if err != nil {
			return rows, fmt.Errorf("%s: %w", s.Name, err)
		}
		rows = append(rows, r)
		printDetail(os.Stdout, r, o.detail)
		if !s.Delete {
			continue
		}
		r, err = w.remove(ctx, s, prefix)
		if err != nil {
			return rows, fmt.Errorf("%s: deletion: %w", s.Name, err)
		}
		rows = append(rows, r)
		printDetail(os.Stdout, r, o.detail)
	}
	return rows, nil
}

// profiled measures, with profiles if they are wanted.
func (w *world) profiled(ctx context.Context, o options, s scenario, measure func() (row, error)) (row, error) {
	if o.profiles == 0 {
		return measure()
	}
	cpu := w.profileCPU(ctx, s.Name, o.profiles)
	r, err := measure()
	return r, errors.Join(err, cpu(), w.profile(ctx, os.Stdout, s.Name))
}
