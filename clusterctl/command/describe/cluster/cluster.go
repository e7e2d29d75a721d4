// Package cluster is the command `clusterctl describe cluster`.
package cluster

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
	"sigs.k8s.io/cluster-api/clusterctl/tree/snapshot"
)

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.PassiveClock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	Tree        tree.Options
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	var conditions string
	var disableGrouping, color bool
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Describe workload clusters",
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
  clusterctl describe cluster my-cluster --grouping=false --echo`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			opts.Tree.Grouping = opts.Tree.Grouping && !disableGrouping
			if conditions != "" {
				opts.Tree.ShowConditions = strings.Split(conditions, ",")
			}
			if cmd.Flags().Changed("color") {
				opts.IO.SetOutColor(color)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	addFlags(cmd.Flags(), opts, &conditions, &disableGrouping, &color)
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func addFlags(flags *pflag.FlagSet, opts *Options, conditions *string, disableGrouping, color *bool) {
	flags.StringVar(conditions, "show-conditions", "", "Comma-separated `list` of objects, as Kind or Kind/name, to show all conditions of; use all for every object")
	flags.BoolVar(&opts.Tree.MachineSets, "show-machinesets", false, "Show MachineSets")
	flags.BoolVar(&opts.Tree.ResourceSets, "show-resourcesets", false, "Show ClusterResourceSets")
	flags.BoolVar(&opts.Tree.HealthChecks, "show-healthchecks", false, "Show MachineHealthChecks, and whether they allow remediation")
	flags.BoolVar(&opts.Tree.Templates, "show-templates", false, "Show the templates that Machines are made from")
	flags.BoolVar(&opts.Tree.Echo, "echo", false, "Also show infrastructure and bootstrap objects that are ready or in the same state as their Machine")
	flags.BoolVar(&opts.Tree.Grouping, "grouping", true, "Group Machines in the same state")
	flags.BoolVar(disableGrouping, "disable-grouping", false, "The same as --grouping=false")
	flags.BoolVarP(color, "color", "c", false, "Use colors. Defaults to true if the output is a terminal")
	// Cannot fail: the flag has just been added.
	_ = flags.MarkDeprecated("disable-grouping", "use --grouping=false instead")
}

func run(ctx context.Context, opts *Options) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: opts.Namespace, Name: opts.ClusterName}
	if name.Namespace == "" {
		name.Namespace = m.Namespace
	}
	objects, err := snapshot.Read(ctx, m.Client, name, opts.Tree)
	if meta.IsNoMatchError(err) {
		if contractErr := m.CheckContract(ctx); contractErr != nil {
			return contractErr
		}
	}
	if err != nil {
		return err
	}
	if objects.Cluster(name) == nil {
		return management.NoCluster(name)
	}
	root := tree.Build(name, objects, opts.Tree)
	return tree.Write(opts.IO.Out, root, tree.Style{Color: opts.IO.OutColor(), Now: opts.Clock.Now()})
}
