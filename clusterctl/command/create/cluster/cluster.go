// Package cluster is the command `clusterctl create cluster`: what `generate cluster` makes is applied, and then watched
// until it is ready.
//
// The making of objects belongs to package clustertemplate, the showing of progress to package tree/live.
package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/catalog"
	"sigs.k8s.io/cluster-api/clusterctl/clustertemplate"
	generate "sigs.k8s.io/cluster-api/clusterctl/command/generate/cluster"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/live"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
	"sigs.k8s.io/cluster-api/internal/distribution/install"
)

// defaultTimeout is enough for real machines, one after the other.
const defaultTimeout = 30 * time.Minute

// Options are the inputs of the command.
type Options struct {
	// Generate are the inputs that the command shares with `generate cluster`.
	Generate *generate.Options
	IO       *iostreams.Streams
	Clock    clock.Clock
	// Backoff repeats failed writes.
	Backoff wait.Backoff
	Wait    bool
	Timeout time.Duration
}

// NewCmd returns the command. runF, if not nil, takes the place of what it does.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{
		IO: f.IO, Clock: clock.RealClock{}, Backoff: install.Backoff(), Wait: true, Timeout: defaultTimeout,
	}
	noWait := false
	// The flags, their completion and what they mean are those of the other command.
	same := generate.NewCmd(f, func(ctx context.Context, g *generate.Options) error {
		opts.Generate = g
		opts.Wait = opts.Wait && !noWait
		if opts.Wait && opts.Timeout <= 0 {
			return fmt.Errorf("--timeout is %s: it must be positive", opts.Timeout)
		}
		if runF != nil {
			return runF(ctx, opts)
		}
		return run(ctx, opts)
	})
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Create a workload cluster and wait until it is ready",
		Long: `Create a workload cluster: generate its objects like ` + "`clusterctl generate cluster`" + `, apply them to the
management cluster, and wait until all of it is ready: the control plane is initialized, all Machines are
running, and no object in the cluster's tree reports that it is not ready.

Once only the readiness of Nodes is missing, the command waits for one more minute: most Nodes need a
network plugin (CNI), which you may have to install. The command then reports what is not ready, and
succeeds. Anything else that is missing when --timeout has passed is an error.

All objects are validated with a dry run before anything is written. Running the command again continues
where it was interrupted, or updates the objects, and waits again. A Cluster of the same name that was not
created by this command is not changed.`,
		Example: `  # Use the default template of the management cluster's infrastructure provider
  clusterctl create cluster my-cluster --kubernetes-version v1.29.0

  # Create three control plane Machines and five workers, in a namespace
  clusterctl create cluster my-cluster --kubernetes-version v1.29.0 --control-plane-machine-count 3 --worker-machine-count 5 --target-namespace foo

  # Use your own template, without waiting
  clusterctl create cluster my-cluster --from ~/my-template.yaml --no-wait`,
		Args: same.Args,
		RunE: func(cmd *cobra.Command, args []string) error {
			same.SetContext(cmd.Context())
			return same.RunE(same, args)
		},
	}
	cmd.Flags().SetNormalizeFunc(same.Flags().GetNormalizeFunc())
	same.Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"list-variables", "write-to"}, flag.Name) {
			cmd.Flags().AddFlag(flag)
		}
	})
	cmd.Flags().BoolVar(&opts.Wait, "wait", true, "Wait until the workload cluster is ready")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "Same as --wait=false")
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", defaultTimeout, "How long to wait, for example 90s or 20m")
	cmd.MarkFlagsMutuallyExclusive("wait", "no-wait")
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	m, objects, err := prepare(ctx, opts)
	if err != nil {
		return err
	}
	cluster, err := clusterAmong(objects, opts.Generate.Request.ClusterName)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: cluster.GetNamespace(), Name: cluster.GetName()}
	if err := refuseForeign(ctx, m.Client, cluster); err != nil {
		return err
	}
	a := &applier{IO: opts.IO, client: m.Client, backoff: opts.Backoff}
	changed, err := a.apply(ctx, objects)
	if err != nil {
		return err
	}
	if !changed {
		opts.IO.Infof("Cluster %s is up to date", name)
	}
	if paused, _, _ := unstructured.NestedBool(cluster.Object, "spec", "paused"); paused && opts.Wait {
		opts.IO.Warnf("Cluster %s is paused: nothing happens until spec.paused is removed", name)
		opts.Wait = false
	}
	if !opts.Wait {
		opts.IO.Infof("To follow its progress, run: clusterctl describe cluster %s -n %s", name.Name, name.Namespace)
		return nil
	}
	return follow(ctx, opts, m, name)
}

// prepare generates the objects for a management cluster that is there.
func prepare(ctx context.Context, opts *Options) (*management.Cluster, []unstructured.Unstructured, error) {
	g := opts.Generate
	c, err := g.Config(ctx)
	if err != nil {
		return nil, nil, err
	}
	store, err := g.Store(ctx)
	if err != nil {
		return nil, nil, err
	}
	m, err := g.Connect(g.Kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	if err := m.CheckContract(ctx); err != nil {
		return nil, nil, err
	}
	generator := &clustertemplate.Generator{
		IO: opts.IO, Catalog: &catalog.Catalog{Config: c, Store: store}, Connect: g.Connect, Kubeconfig: g.Kubeconfig,
	}
	objects, err := generator.Objects(ctx, g.Request)
	return m, objects, err
}

// clusterAmong returns the one Cluster that the command is about.
func clusterAmong(objects []unstructured.Unstructured, name string) (*unstructured.Unstructured, error) {
	var others []string
	for i := range objects {
		o := &objects[i]
		if o.GroupVersionKind().GroupKind() != tree.ClusterKind.GroupKind() {
			continue
		}
		if o.GetName() == name {
			return o, nil
		}
		others = append(others, o.GetName())
	}
	if len(others) == 0 {
		return nil, fmt.Errorf("the template contains no Cluster: use one that does, or apply the output of `clusterctl generate cluster` with kubectl")
	}
	return nil, fmt.Errorf("the template makes no Cluster %s, but %s: let it use the variable CLUSTER_NAME", name, strings.Join(others, ", "))
}

// follow shows the cluster until it is ready.
func follow(ctx context.Context, opts *Options, m *management.Cluster, name types.NamespacedName) error {
	waitCtx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, live.ErrTimeout)
	defer cancel()
	options := tree.Options{Grouping: true}
	watcher := snapshot.Watch(waitCtx, m.Client, name, options)
	defer watcher.Wait()
	defer cancel()
	f := &live.Follower{
		Screen: live.NewScreen(opts.IO), Source: watcher, Cluster: name, Options: options, Clock: opts.Clock,
	}
	opts.IO.Infof("Waiting for cluster %s to be ready; interrupting this command does not stop the creation", name)
	var last *tree.Objects
	w := &waiter{name: name, clock: opts.Clock}
	err := f.Follow(waitCtx, func(objects *tree.Objects) ([]string, error) {
		last = objects
		return w.remaining(objects)
	})
	if last != nil {
		if writeErr := tree.Write(opts.IO.Out, tree.Build(name, last, options), tree.Style{Colour: opts.IO.OutColour(), Now: opts.Clock.Now()}); writeErr != nil {
			return writeErr
		}
	}
	if err != nil {
		return live.Ending{
			Cluster: name, Timeout: opts.Timeout, State: "ready", Going: fmt.Sprintf("cluster %s", name),
			Hint: fmt.Sprintf("see `clusterctl describe cluster %s -n %s`; run the same command to wait again", name.Name, name.Namespace),
		}.Explain(err, f.Waiting(), watcher.Err())
	}
	state := "is ready"
	if missing := w.warning(); missing != "" {
		state = "is running"
		opts.IO.Warnf("cluster %s is not fully ready: %s\nIf the cluster has no network plugin (CNI) yet, install one with its kubeconfig", name, missing)
	}
	opts.IO.Infof("\nCluster %[1]s %[4]s. To get its kubeconfig, and to delete it:\n  clusterctl get kubeconfig %[2]s -n %[3]s > %[2]s.kubeconfig\n  clusterctl delete cluster %[2]s -n %[3]s", name, name.Name, name.Namespace, state)
	return nil
}
