// Package explain is the command `clusterctl explain`.
package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clusterrollout"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/explain/gather"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/tree"
)

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.PassiveClock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	// Output is text, json or yaml.
	Output string
	// ExitCode makes the exit code depend on the result.
	ExitCode bool
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Connect: f.Connect, Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Explain what a workload cluster waits for",
		Long: `Find the root cause of what a workload cluster waits for, from its objects, their conditions, warnings and
the providers' Deployments. The first line is the cause; after it come the objects from the Cluster down to
it, what to do, and what else was found.

The command only reads. It succeeds whatever it finds; with --exit-code, its exit code is 0 if the cluster waits for
nothing, 2 if its controllers are at work, and 3 if it is blocked: a user or another program has to act.`,
		Example: `  # Explain why a workload cluster is not ready, or not upgraded, or not deleted
  clusterctl explain my-cluster

  # The same for programs
  clusterctl explain my-cluster --namespace foo --output json

  # Fail if a user or another program has to act
  clusterctl explain my-cluster --exit-code || [ $? = 2 ]`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	clusterflags.AddObjectOutput(cmd, &opts.Output)
	cmd.Flags().BoolVar(&opts.ExitCode, "exit-code", false, "Exit with 2 if the cluster is changing, and with 3 if it is blocked")
	cmd.ValidArgsFunction = clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace)
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	name := m.Key(opts.Namespace, opts.ClusterName)
	input, err := gather.Read(ctx, m.Client, name, opts.Clock.Now())
	if err := m.OrNotInitialized(ctx, err); err != nil {
		return err
	}
	if input.Objects.Cluster(name) == nil {
		return management.NoCluster(name)
	}
	report := explain.Explain(input)
	if err := write(opts, report); err != nil {
		return err
	}
	if opts.Output == "" || opts.Output == "text" {
		if notice := clusterrollout.Notice(ctx, m.Client, input.Objects.Cluster(name), opts.Clock.Now()); notice != "" {
			opts.IO.Infof("%s", opts.IO.Commands(notice))
		}
	}
	if !opts.ExitCode || report.Healthy {
		return nil
	}
	return factory.WithAnswer(fmt.Errorf("cluster %s waits for %s", name, report.Causes[0].Object), exitCode(report))
}

func exitCode(r explain.Report) int {
	if slices.ContainsFunc(r.Causes, func(c explain.Cause) bool { return c.State == explain.Blocked }) {
		return factory.ExitBlocked
	}
	return factory.ExitChanges
}

func write(opts *Options, report explain.Report) error {
	switch {
	case clusterflags.ForPrograms(opts.Output):
		return clusterflags.Print(opts.IO.Out, opts.Output, report)
	case opts.Output == "name":
		var names []string
		for _, cause := range report.Causes {
			names = append(names, tree.ReferenceName(cause.Object.APIVersion, cause.Object.Kind, cause.Object.Name))
		}
		return tree.WriteNames(opts.IO.Out, names)
	default:
		complete(opts.IO, report.Causes)
		return explain.Write(opts.IO.Out, report, opts.Clock.Now())
	}
}

// complete completes the commands of actions, except those for the workload cluster.
func complete(streams *iostreams.Streams, causes []explain.Cause) {
	for _, c := range causes {
		for i, action := range c.Actions {
			if !strings.Contains(action, "workload cluster") {
				c.Actions[i] = streams.Commands(action)
			}
		}
	}
}
