// Package move is the command `clusterctl move`.
//
// What it does is in package clusterctl/move.
package move

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/move"
	"sigs.k8s.io/cluster-api/clusterctl/move/graph"
	"sigs.k8s.io/cluster-api/clusterctl/move/side"
	"sigs.k8s.io/cluster-api/packages/lock"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// Options are the inputs of the command.
type Options struct {
	IO      *iostreams.Streams
	Connect func(management.Kubeconfig) (*management.Cluster, error)
	Clock   clock.PassiveClock
	// Backoff is for requests that fail for reasons that pass, BlockBackoff for objects that block the move.
	Backoff, BlockBackoff wait.Backoff
	// Self and Ended are of the Lease; see package lock.
	Self  lock.Holder
	Ended func(lock.Holder) bool

	From, To      management.Kubeconfig
	Namespace     string
	ToDirectory   string
	FromDirectory string
	DryRun        bool
	Cancel        bool
	KeepPaused    bool
	HideWarnings  string
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{
		IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}, Backoff: retry.Backoff(), BlockBackoff: move.BlockBackoff(),
		Self: lock.Self(), Ended: lock.Ended,
	}
	cmd := &cobra.Command{
		Use:   "move",
		Short: "Move Cluster API objects and all dependencies between management clusters",
		Long: `Move Cluster API objects and all their dependencies between management clusters.

The target cluster needs the same providers as the source, in the same version or a newer one: see
` + "`clusterctl init`" + `. Clusters are paused during the move, and keep running.

A move can be interrupted at any time: run the same command again to continue. Until it starts to remove
objects from the source, --cancel gives up: it deletes what was copied, and resumes the Clusters in the source.

GitOps tools must not create or change the objects meanwhile: suspend them.`,
		Example: `  # Move the objects of the current namespace
  clusterctl move --to-kubeconfig target.kubeconfig

  # Move the objects of another namespace, and show first what would be moved
  clusterctl move --to-kubeconfig target.kubeconfig --namespace foo --dry-run
  clusterctl move --to-kubeconfig target.kubeconfig --namespace foo

  # Write the objects to a directory, and create them in a cluster
  clusterctl move --to-directory /backup
  clusterctl move --from-directory /backup --to-kubeconfig target.kubeconfig`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.validate(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.From, false)
	flags := cmd.Flags()
	clusterflags.AddTarget(cmd, &opts.To)
	clusterflags.AddNamespace(cmd, f, &opts.From, &opts.Namespace)
	flags.Lookup("namespace").Usage = "The `namespace` whose objects are moved. Defaults to the kubeconfig's current namespace"
	flags.BoolVar(&opts.DryRun, "dry-run", false, "Check and print what would be moved, without writing anything; with -v 1 also why")
	flags.StringVar(&opts.ToDirectory, "to-directory", "", "Write the objects to this existing `directory`. They stay in the source")
	flags.StringVar(&opts.FromDirectory, "from-directory", "", "Create the objects of a `directory` written with --to-directory")
	flags.BoolVar(&opts.Cancel, "cancel", false, "Give up an interrupted move that has not started to remove objects")
	flags.BoolVar(&opts.KeepPaused, "keep-paused", false,
		"Also move Clusters and ClusterClasses that are paused, and leave them paused; without it, they prevent the move")
	flags.StringVar(&opts.HideWarnings, "hide-api-warnings", hideDefault, "Which warnings of the API servers are not printed: default "+
		"(about deprecated API versions, names of finalizers, and ClusterClasses that the move has paused), all or none")
	cmd.MarkFlagsMutuallyExclusive("to-directory", "to-kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("from-directory", "to-directory")
	cmd.MarkFlagsMutuallyExclusive("from-directory", "kubeconfig")
	cmd.MarkFlagsMutuallyExclusive("cancel", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("cancel", "from-directory")
	return cmd
}

func (o *Options) validate() error {
	if o.To.Path == "" && o.To.Context == "" && o.ToDirectory == "" && o.FromDirectory == "" && !o.DryRun {
		return errors.New("no target: set --to-kubeconfig, --to-directory or --from-directory")
	}
	if !slices.Contains([]string{hideDefault, hideAll, hideNone}, o.HideWarnings) {
		return fmt.Errorf("invalid --hide-api-warnings %q: must be default, all or none", o.HideWarnings)
	}
	return nil
}

func run(ctx context.Context, opts *Options) error {
	show := newShow(opts.IO, opts.Clock)
	m := &move.Mover{Progress: show, BlockBackoff: opts.BlockBackoff, NewID: move.NewID, KeepPaused: opts.KeepPaused}
	if opts.FromDirectory != "" {
		return fromDirectory(ctx, opts, m, show)
	}
	source, err := connect(ctx, opts, opts.From, "source")
	if err != nil {
		return err
	}
	m.Source = opts.side(source, "source", show)
	if m.Namespace = opts.Namespace; m.Namespace == "" {
		m.Namespace = source.Namespace
	}
	m.Lock = &lock.Lock{
		Task: move.Task(), Config: source.Config, Namespace: m.Namespace, Self: opts.Self, Ended: opts.Ended,
		Retry: m.Source.Policy(), Clock: opts.Clock, Say: show.Say, Explain: management.Text,
	}
	if err := opts.destination(ctx, m, show); err != nil {
		return err
	}
	switch {
	case opts.DryRun:
		return dryRun(ctx, opts, m)
	case opts.Cancel:
		return conclude(opts, m.Namespace, m.Cancel(ctx), "The move of namespace %s is canceled", m.Namespace)
	case opts.ToDirectory != "":
		objects, err := m.ToDirectory(ctx)
		return conclude(opts, m.Namespace, err, "Wrote %d objects of namespace %s to %s in %s; they stay in the source, and are resumed",
			objects, m.Namespace, m.Directory, show.elapsed())
	default:
		err := m.ToCluster(ctx)
		return conclude(opts, m.Namespace, err, "Moved namespace %s in %s", m.Namespace, show.elapsed())
	}
}

// destination sets the directory or the target of a move; a dry run may have none.
func (o *Options) destination(ctx context.Context, m *move.Mover, show *show) error {
	switch {
	case o.ToDirectory != "":
		if err := move.CheckDirectory(o.ToDirectory); err != nil {
			return err
		}
		var err error
		if m.Directory, err = filepath.Abs(o.ToDirectory); err != nil {
			return fmt.Errorf("cannot use directory %s: %w", o.ToDirectory, err)
		}
	case o.To.Path != "" || o.To.Context != "":
		target, err := connect(ctx, o, o.To, "target")
		if err != nil {
			return err
		}
		m.Target = o.side(target, "target", show)
	}
	return nil
}

// conclude reports the result: what was done, unless there was nothing to do.
func conclude(opts *Options, namespace string, err error, done string, args ...any) error {
	switch {
	case errors.Is(err, move.ErrNothing):
		opts.IO.Infof("There is nothing to move in namespace %s", namespace)
		return nil
	case err != nil:
		return err
	}
	opts.IO.Infof(done, args...)
	return nil
}

// connect connects to a management cluster, at the pace of its API server.
func connect(ctx context.Context, opts *Options, k management.Kubeconfig, name string) (*management.Cluster, error) {
	limited, err := opts.Connect(k)
	if err != nil {
		return nil, err
	}
	c, err := limited.Unlimited()
	if err == nil && opts.HideWarnings != hideAll {
		c, err = c.Warning(&warnings{io: opts.IO, cluster: name, all: opts.HideWarnings == hideNone})
	}
	if err != nil {
		return nil, err
	}
	if err := c.CheckContract(ctx); err != nil {
		return nil, fmt.Errorf("the %s cluster: %w", name, err)
	}
	return c, nil
}

func (o *Options) side(c *management.Cluster, name string, show *show) *side.Side {
	return &side.Side{Client: c.Client, Name: name, Host: c.Host, Backoff: o.Backoff, Retrying: show.Retrying}
}

func fromDirectory(ctx context.Context, opts *Options, m *move.Mover, show *show) error {
	if err := move.CheckDirectory(opts.FromDirectory); err != nil {
		return err
	}
	m.Directory = opts.FromDirectory
	if opts.DryRun {
		return dryRunFromDirectory(ctx, opts, m, show)
	}
	target, err := connect(ctx, opts, opts.To, "target")
	if err != nil {
		return err
	}
	m.Target = opts.side(target, "target", show)
	restored, err := m.FromDirectory(ctx)
	switch {
	case errors.Is(err, move.ErrNothing):
		opts.IO.Infof("There are no objects in %s", opts.FromDirectory)
		return nil
	case err != nil:
		return err
	}
	opts.IO.Infof("Created %d of the %d objects of %s in %s; %d existed, and were not changed",
		restored.Objects-restored.Existing, restored.Objects, opts.FromDirectory, show.elapsed(), restored.Existing)
	return nil
}

// dryRunFromDirectory prints what would happen to each object of a directory. Without a target that can be reached, it reads the files.
func dryRunFromDirectory(ctx context.Context, opts *Options, m *move.Mover, show *show) error {
	target, err := connect(ctx, opts, opts.To, "target")
	_, unreachable := errors.AsType[*management.ConnectionError](err)
	if err != nil && !unreachable && !errors.Is(err, management.ErrNoKubeconfig) {
		return err // such as a target without providers, in which nothing can be created
	}
	if err != nil {
		opts.IO.Warnf("cannot find out which objects exist already: %v", err)
	} else {
		m.Target = opts.side(target, "target", show)
	}
	planned, err := m.DryRunFromDirectory(ctx)
	if errors.Is(err, move.ErrNothing) {
		opts.IO.Infof("There are no objects in %s", opts.FromDirectory)
		return nil
	}
	for _, p := range planned {
		fmt.Fprintf(opts.IO.Out, "%s %s\n", p.Action, p.Object)
	}
	return err
}

// dryRun prints the objects that would be moved, in the order in which they would be created, and checks what a move checks.
func dryRun(ctx context.Context, opts *Options, m *move.Mover) error {
	g, err := m.DryRun(ctx)
	if errors.Is(err, move.ErrNothing) {
		opts.IO.Infof("There is nothing to move in namespace %s", m.Namespace)
		return nil
	}
	if g == nil {
		return err
	}
	for _, n := range g.Nodes {
		fmt.Fprintf(opts.IO.Out, "%s %s %s\n", verb(opts, n), n.Kind.Kind, qualified(n.GetNamespace(), n.GetName()))
	}
	return err
}

func verb(opts *Options, n *graph.Node) string {
	switch {
	case opts.ToDirectory != "":
		return "write"
	case n.Global:
		return "copy"
	default:
		return "move"
	}
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
