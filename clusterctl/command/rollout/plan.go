package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
)

// PlanOptions are the inputs of the command `clusterctl rollout plan`.
type PlanOptions struct {
	*FleetOptions
	// Files are files of YAML or JSON with a ClusterRollout; "-" is the standard input. Without files, the ClusterRollout exists.
	Files []string
	// Output is text, json or yaml.
	Output string
	// ShowClusters names all Clusters.
	ShowClusters bool
	// ExitCode makes changes an error with the code ExitChanges.
	ExitCode bool
	// SkipExtensions leaves out the patches of runtime extensions.
	SkipExtensions bool
}

// NewPlan returns the command `clusterctl rollout plan`. runF, if not nil, is run instead.
func NewPlan(f *factory.Factory, runF func(context.Context, *PlanOptions) error) *cobra.Command {
	opts := &PlanOptions{FleetOptions: newFleetOptions(f)}
	cmd := &cobra.Command{
		Use:   "plan (NAME | -f FILE)",
		Short: "Show what a ClusterRollout does to each Cluster",
		Long: `Show what a ClusterRollout, in a file or in the management cluster, does to each Cluster that it selects: how
many Machines are replaced, what changes in place, what cannot be changed and why, in which stage, and what cannot
go back. Its strategy may be in the file, too.

Each Cluster is planned like ` + "`clusterctl plan`" + ` does. Nothing is written; templates are compared by dry runs.`,
		Example: `  # Show what a rollout would do, before it is applied
  clusterctl rollout plan -f rollout.yaml

  # Show what an existing one does, with the names of all Clusters
  clusterctl rollout plan my-rollout --show-clusters

  # List the Clusters that cannot be changed
  clusterctl rollout plan my-rollout -o json | jq '.stages[].clusters[] | select(.effect == "Forbidden")'

  # Find out in a script whether anything changes: the exit code is 0 if not, and 2 if so
  clusterctl rollout plan -f rollout.yaml --exit-code`,
		Args: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case len(opts.Files) > 0 && len(args) > 0:
				return errors.New("a name and --file exclude each other: the file has the name")
			case len(opts.Files) > 0:
				return nil
			}
			opts.Name, err = rolloutName(cmd, args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPlan(cmd.Context(), opts)
		},
	}
	opts.addFlags(cmd, f)
	cmd.Flags().StringArrayVarP(&opts.Files, "file", "f", nil,
		"A `file` with a ClusterRollout, and its ClusterRolloutStrategy; may be repeated. - is the standard input")
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	cmd.Flags().BoolVar(&opts.ShowClusters, "show-clusters", false, "Name all Clusters, instead of the first few of each group")
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "Exit with 2 if Clusters change, or may change")
	cmd.Flags().BoolVar(&opts.SkipExtensions, "skip-extensions", false,
		"Leave out the patches of runtime extensions, which are called from this machine otherwise")
	return cmd
}

func runPlan(ctx context.Context, opts *PlanOptions) error {
	objects, err := clusterflags.ReadFiles(opts.IO, opts.Files)
	if err != nil {
		return err
	}
	m, key, err := opts.connect(ctx)
	if err != nil {
		return err
	}
	var r *fleetv1.ClusterRollout
	var strategies []*fleetv1.ClusterRolloutStrategy
	if len(opts.Files) > 0 {
		r, strategies, err = clusterrollout.Parse(objects, cmp.Or(opts.Namespace, m.Namespace))
	} else {
		r, err = clusterrollout.Get(ctx, m.Client, key)
	}
	if err != nil {
		return err
	}
	planning, err := opts.planning(m)
	if err != nil {
		return err
	}
	plan, err := planning.Plan(ctx, r, strategies)
	if err != nil {
		return err
	}
	if clusterflags.ForPrograms(opts.Output) {
		err = clusterflags.Print(opts.IO.Out, opts.Output, plan)
	} else {
		err = clusterrollout.Show(opts.IO.Out, plan, opts.ShowClusters)
	}
	if err == nil && opts.ExitCode && plan.Changes() {
		return factory.WithAnswer(fmt.Errorf("ClusterRollout %s/%s changes Clusters", plan.Namespace, plan.Name), factory.ExitChanges)
	}
	return err
}

// planning returns what makes plans with the objects of a management cluster.
func (o *PlanOptions) planning(m *management.Cluster) (*clusterrollout.Planning, error) {
	// A thousand Clusters are some ten thousand requests, a few of them at the same time.
	m, err := m.Unlimited()
	if err != nil {
		return nil, err
	}
	live, err := m.Discovering(topologyplan.Contracts, func() {
		o.IO.Infof("You may not read CustomResourceDefinitions: their schemas are discovered, and contracts of other providers are assumed")
	})
	if err != nil {
		return nil, err
	}
	services, err := management.NewDialer(m.Client, m.Config)
	if err != nil {
		return nil, err
	}
	planner := &rolloutplan.Planner{
		Live: live, Dial: services.DialContext, UserAgent: "clusterctl", Clock: o.Clock, SkipExtensions: o.SkipExtensions,
		ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
	}
	return &clusterrollout.Planning{
		Client: m.Client, Effect: planner.Effect, Progress: o.progress(),
		Backoff: wait.Backoff{Duration: 200 * time.Millisecond, Factor: 3, Steps: 4},
	}, nil
}

// progress returns what shows how many Clusters are planned: each on a terminal, every hundred elsewhere.
func (o *PlanOptions) progress() func(done, all int) {
	const name = "Planning"
	var set func(name, state string)
	return func(done, all int) {
		if o.IO.ErrTerminal() || done%100 == 0 || done == all {
			if set == nil {
				set = o.IO.Lines(name)
			}
			set(name, fmt.Sprintf("%d of %d Clusters", done, all))
		}
	}
}
