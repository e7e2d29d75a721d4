// Package explain is the command `clusterctl explain`.
package explain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/clusterctl/explain/gather"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// Options are the inputs of the command.
type Options struct {
	IO          *iostreams.Streams
	Connect     func(management.Kubeconfig) (*management.Cluster, error)
	Clock       clock.PassiveClock
	Kubeconfig  management.Kubeconfig
	Namespace   string
	ClusterName string
	// Output is text or json.
	Output string
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

The command only reads, and succeeds whatever it finds.`,
		Example: `  # Explain why a workload cluster is not ready, or not upgraded, or not deleted
  clusterctl explain my-cluster

  # The same for programs
  clusterctl explain my-cluster --namespace foo --output json`,
		Args: clusterflags.OneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.ClusterName = args[0]
			if opts.Output != "text" && opts.Output != "json" {
				return fmt.Errorf("--output %q is not supported: use text or json", opts.Output)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "text", "Output `format`: text or json")
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
	if opts.Output == "json" {
		raw, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(opts.IO.Out, string(raw))
		return err
	}
	return explain.Write(opts.IO.Out, report, opts.Clock.Now())
}
