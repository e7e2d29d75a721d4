// Package describe is the command `clusterctl describe cluster`.
package describe

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/ready"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/live"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
)

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.Clock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	Tree        tree.Options
	// Output is text, wide, name, json or yaml.
	Output string
	// Watch shows the tree until the cluster is deleted, or the command is interrupted.
	Watch bool
}

// NewCluster returns the command. runF, if not nil, is run instead.
func NewCluster(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	var conditions string
	var disableGrouping, color, reports bool
	cmd := &cobra.Command{
		Use:     "cluster NAME",
		Aliases: []string{"clusters"},
		Short:   "Describe workload clusters",
		Long: `Show the objects of a workload cluster as a tree, with the state of each.

Machines in the same state are grouped into one line, and the infrastructure and bootstrap objects of a
Machine are only shown if their state differs from the Machine's.`,
		Example: `  # Show the state of a workload cluster
  clusterctl describe cluster my-cluster

  # Show all conditions of the control plane, of one Machine, or of every object
  clusterctl describe cluster my-cluster --show-conditions KubeadmControlPlane
  clusterctl describe cluster my-cluster --show-conditions Machine/my-machine
  clusterctl describe cluster my-cluster --show-conditions all

  # Show every Machine, with its infrastructure and bootstrap objects
  clusterctl describe cluster my-cluster --grouping=false --echo

  # Follow a rollout
  clusterctl describe cluster my-cluster --watch

  # Show versions, Nodes, replicas and whole messages, or the tree for programs
  clusterctl describe cluster my-cluster --output wide
  clusterctl describe cluster my-cluster --output json --show-conditions all`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			opts.Tree.Reports = reports && (opts.Output == "" || opts.Output == "text")
			opts.Tree.Grouping = opts.Tree.Grouping && !disableGrouping
			if conditions != "" {
				opts.Tree.ShowConditions = strings.Split(conditions, ",")
			}
			if cmd.Flags().Changed("color") {
				opts.IO.SetOutColor(color)
			}
			if opts.Output == "name" {
				opts.Tree.Grouping = false // A group has no name.
			}
			if err := checkOutput(opts); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	clusterflags.AddObjectOutput(cmd, &opts.Output)
	addFlags(cmd.Flags(), opts, &conditions, &disableGrouping, &color)
	cmd.Flags().BoolVar(&reports, "v1beta2", true,
		"Show the conditions and counters of v1beta2, unless the managers are older, or --output is not text")
	clusterflags.CompleteWith(cmd, "show-conditions", func(ctx context.Context, args []string, typed string) ([]string, error) {
		return conditionObjects(ctx, opts, args, typed)
	})
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

// conditionObjects returns the values of --show-conditions for a Cluster: its objects and their kinds. What is typed may have other values
// before a comma.
func conditionObjects(ctx context.Context, opts *Options, args []string, typed string) ([]string, error) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	if len(args) == 0 {
		return []string{before + "all"}, nil
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	objects, err := snapshot.Read(ctx, m.Client, m.Key(opts.Namespace, args[0]), opts.Tree)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{before + "all": true}
	for _, u := range objects.All() {
		found[before+u.GetKind()] = true
		found[before+u.GetKind()+"/"+u.GetName()] = true
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func addFlags(flags *pflag.FlagSet, opts *Options, conditions *string, disableGrouping, color *bool) {
	flags.StringVar(conditions, "show-conditions", "",
		"Comma-separated `list` of objects, as Kind or Kind/name, to show all conditions of; use all for every object. "+
			"With a + at the end, only those that are bad or have a message")
	flags.BoolVar(&opts.Tree.MachineSets, "show-machinesets", false, "Show MachineSets")
	flags.BoolVar(&opts.Tree.ResourceSets, "show-resourcesets", false, "Show ClusterResourceSets")
	flags.BoolVar(&opts.Tree.HealthChecks, "show-healthchecks", false, "Show MachineHealthChecks, and whether they allow remediation")
	flags.BoolVar(&opts.Tree.Templates, "show-templates", false, "Show the templates that Machines are made from")
	flags.BoolVar(&opts.Tree.Echo, "echo", false,
		"Also show infrastructure and bootstrap objects that are ready or in the same state as their Machine; "+
			"with --grouping=false, those of all Machines")
	flags.BoolVar(&opts.Tree.Grouping, "grouping", true, "Group Machines in the same state")
	flags.BoolVar(disableGrouping, "disable-grouping", false, "The same as --grouping=false")
	flags.BoolVarP(&opts.Watch, "watch", "w", false, "Show changes until the cluster is deleted, or until interrupted")
	flags.BoolVarP(color, "color", "c", false, "Use colors. Defaults to true if the output is a terminal")
	// Cannot fail: the flag has just been added.
	_ = flags.MarkDeprecated("disable-grouping", "use --grouping=false instead")
}

// isTable reports whether a format is for users.
func isTable(format string) bool { return format == "" || format == "text" || format == "wide" }

func checkOutput(opts *Options) error {
	if opts.Watch && !isTable(opts.Output) {
		return fmt.Errorf("--watch is not supported with --output %s: use a table, or run the command repeatedly", opts.Output)
	}
	return nil
}

func run(ctx context.Context, opts *Options) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := m.Key(opts.Namespace, opts.ClusterName)
	if opts.Watch {
		return follow(ctx, opts, m, name)
	}
	objects, err := snapshot.Read(ctx, m.Client, name, opts.Tree)
	if err := m.OrNotInitialized(ctx, err); err != nil {
		return err
	}
	if objects.Cluster(name) == nil {
		return management.NoCluster(name)
	}
	if err := write(opts, name, objects); err != nil {
		return err
	}
	if !isTable(opts.Output) {
		return nil
	}
	if notice := clusterrollout.Notice(ctx, m.Client, objects.Cluster(name), opts.Clock.Now()); notice != "" {
		opts.IO.Infof("%s", opts.IO.Commands(notice))
	}
	if list, err := ready.Remaining(name, objects); err != nil || len(list)+len(ready.Unready(name, objects)) > 0 {
		opts.IO.Infof("What it waits for: %s", opts.IO.Command("clusterctl explain %s -n %s", name.Name, name.Namespace))
	}
	return nil
}

// write prints the tree in the requested format.
func write(opts *Options, name types.NamespacedName, objects *tree.Objects) error {
	if isTable(opts.Output) {
		return live.Print(opts.IO, opts.Clock.Now(), name, objects, opts.Tree, opts.Output == "wide")
	}
	root := tree.Build(name, objects, opts.Tree)
	if opts.Output == "name" {
		return tree.WriteNames(opts.IO.Out, tree.Names(root))
	}
	return clusterflags.Print(opts.IO.Out, opts.Output, tree.NewDocument(root))
}

// follow shows the tree until the Cluster and its objects are deleted, or the context ends: that is how users stop it.
func follow(ctx context.Context, opts *Options, m *management.Cluster, name types.NamespacedName) error {
	f := &live.Follower{
		Screen: live.Screen{
			W: opts.IO.Screen(), Terminal: opts.IO.OutTerminal() && opts.IO.ErrTerminal(), Color: opts.IO.OutColor(), Size: opts.IO.ErrSize,
		},
		Cluster: name, Options: opts.Tree, Clock: opts.Clock, Wide: opts.Output == "wide",
	}
	found := false
	err := f.Watch(ctx, m.Client, func(_ context.Context, objects *tree.Objects) ([]string, error) {
		switch {
		case objects.Cluster(name) != nil:
			found = true
		case !found:
			return nil, management.NoCluster(name)
		case len(objects.All()) == 0:
			return nil, nil
		}
		return []string{"changes, until interrupted"}, nil
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	opts.IO.Infof("Cluster %s is deleted", name)
	return nil
}
