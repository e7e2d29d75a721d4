// Package initialize is the command `clusterctl init`. (Go allows no package named init.)
package initialize

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/execute"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// topologyVariable is the environment variable of the ClusterTopology feature, which requires a newer Kubernetes version.
const topologyVariable = "CLUSTER_TOPOLOGY"

// Options are the inputs of the command.
type Options struct {
	IO              *iostreams.Streams
	Env             func(string) (string, bool)
	Catalog         func(context.Context) (*catalog.Catalog, error)
	Connect         func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig      management.Kubeconfig
	Selection       choose.Selection
	TargetNamespace string
	Wait            bool
	// WaitTimeout is in seconds, for each provider.
	WaitTimeout int
	Validate    bool
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Env: f.Env, Catalog: f.Catalog, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Initialize a management cluster",
		Long: `Initialize a management cluster: install the core provider, the kubeadm bootstrap and control plane
providers, and the providers given by flags. On an initialized management cluster, it adds providers.

Everything is downloaded and checked before anything is installed, and the command can safely be run
again. cert-manager is installed if a provider needs it and the cluster does not have it.`,
		Example: `  # Install an infrastructure provider and the default providers
  clusterctl init --infrastructure aws

  # Install specific versions
  clusterctl init --infrastructure aws:v2.4.0 --core cluster-api:v2.0.0

  # Use another management cluster
  clusterctl init --kubeconfig foo.yaml --infrastructure aws

  # Install several infrastructure providers
  clusterctl init --infrastructure aws,vsphere

  # Install all providers into one namespace
  clusterctl init --infrastructure aws --target-namespace foo

  # Skip the kubeadm providers
  clusterctl init --infrastructure aws --bootstrap - --control-plane -

  # Wait until the providers are ready
  clusterctl init --infrastructure aws --wait-providers`,
		Args: clusterflags.NoArgs("--infrastructure"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	addFlags(cmd, f, opts)
	cmd.AddCommand(newCmdListImages(opts, nil))
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	planner, err := newPlanner(ctx, opts)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	opts.IO.Infof("Fetching providers")
	waiting := func(err error) { opts.IO.Infof("Retrying: %s", management.Text(err)) }
	if err := m.CheckInstallable(ctx, minKubernetes(opts), waiting); err != nil {
		return err
	}
	planner.Client = m.Client
	plan, err := planner.Plan(ctx, choose.InstallOptions{
		Selection: opts.Selection, TargetNamespace: opts.TargetNamespace, Lenient: !opts.Validate,
	})
	if err != nil {
		return err
	}
	installer := &execute.Installer{Display: opts.IO, Client: m.Client, Backoff: retry.Backoff()}
	if err := installer.Install(ctx, plan); err != nil {
		return err
	}
	if opts.Wait {
		err = installer.Wait(ctx, plan, time.Duration(opts.WaitTimeout)*time.Second)
	} else {
		err = installer.WarnRefused(ctx, plan)
	}
	if err != nil {
		return err
	}
	if plan.FirstRun {
		printHint(opts, infrastructure(plan))
	}
	return nil
}

// exampleVersion is the version of Kubernetes in commands that are proposed.
const exampleVersion = "v1.36.3"

// printHint prints what to do next, as commands that can be run as they are. infrastructure are the names of the providers of machines.
func printHint(opts *Options, infrastructure []string) {
	fmt.Fprintf(opts.IO.Out, "\nYour management cluster has been initialized successfully!\n\n")
	if !opts.Wait {
		fmt.Fprintf(opts.IO.Out, "The providers are starting. To wait until they are ready, run:\n\n  %s\n\n",
			opts.IO.Command("kubectl wait --for=condition=Available deployment -A -l cluster.x-k8s.io/provider --timeout=5m"))
	}
	if len(infrastructure) == 0 {
		fmt.Fprintf(opts.IO.Out, "Workload clusters need an infrastructure provider. "+
			"To list those that `init --infrastructure` knows, run:\n\n  %s\n\n",
			opts.IO.Command("clusterctl config repositories"))
		return
	}
	flags := " --kubernetes-version " + exampleVersion
	if len(infrastructure) > 1 { // One is the default.
		flags = " --infrastructure " + infrastructure[0] + flags
	}
	fmt.Fprintf(opts.IO.Out, "You can now create your first workload cluster by running the following:\n\n  %s\n\n"+
		"or, which also waits until it is ready:\n\n  %s\n\n",
		opts.IO.Command("clusterctl generate cluster my-cluster%s | kubectl apply -f -", flags),
		opts.IO.Command("clusterctl create cluster my-cluster%s", flags))
}

// infrastructure returns the names of the infrastructure providers that an installation leaves behind.
func infrastructure(plan *choose.Installation) []string {
	var names []string
	for _, c := range plan.Install {
		if c.Provider.Type == clusterctlv1.InfrastructureProviderType {
			names = append(names, c.Provider.Name)
		}
	}
	for _, p := range plan.Installed {
		if p.Type == string(clusterctlv1.InfrastructureProviderType) {
			names = append(names, p.ProviderName)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func newPlanner(ctx context.Context, opts *Options) (*choose.InstallPlanner, error) {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	return &choose.InstallPlanner{Catalog: all, Warn: func(problem error) { opts.IO.Warnf("%v", problem) }}, nil
}

func minKubernetes(opts *Options) string {
	value, _ := opts.Env(topologyVariable)
	if on, err := strconv.ParseBool(value); err == nil && on {
		return management.MinKubernetesTopology
	}
	return management.MinKubernetes
}
