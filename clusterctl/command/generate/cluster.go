package generate

import (
	"context"
	"io"
	"slices"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/clustertemplate"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

const (
	controlPlaneMachinesFlag = "control-plane-machine-count"
	workerMachinesFlag       = "worker-machine-count"
)

// ClusterOptions are the inputs of the command.
type ClusterOptions struct {
	IO            *iostreams.Streams
	Catalog       func(context.Context) (*catalog.Catalog, error)
	Connect       func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig    management.Kubeconfig
	Request       clustertemplate.Request
	ListVariables bool
	WriteTo       string
}

// NewCluster returns the command. runF, if not nil, is run instead.
func NewCluster(f *factory.Factory, runF func(context.Context, *ClusterOptions) error) *cobra.Command {
	opts := &ClusterOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "cluster NAME",
		Short: "Generate templates for creating workload clusters",
		Long: `Generate the YAML of a workload cluster, for kubectl apply.

The template comes from the repository of an infrastructure provider (by default the only one in the
management cluster), or from a ConfigMap, a file, a URL or standard input. Variables get their values from
flags, the environment and the clusterctl configuration file. If the cluster needs a ClusterClass that the
management cluster does not have, it is included.`,
		Example: `  # Use the default template of the management cluster's infrastructure provider
  clusterctl generate cluster my-cluster --kubernetes-version v1.36.3 | kubectl apply -f -

  # Use a specific provider, or a specific version, which needs no management cluster
  clusterctl generate cluster my-cluster --infrastructure aws
  clusterctl generate cluster my-cluster --infrastructure aws:v2.4.0

  # Use another template of the provider
  clusterctl generate cluster my-cluster --flavor high-availability

  # Set the number of machines and the namespace
  clusterctl generate cluster my-cluster --control-plane-machine-count 3 --worker-machine-count 5 --target-namespace foo

  # Use a template from elsewhere
  clusterctl generate cluster my-cluster --from ~/my-template.yaml
  clusterctl generate cluster my-cluster --from https://github.com/my-org/my-repository/blob/main/my-template.yaml
  clusterctl generate cluster my-cluster --from-config-map my-templates
  cat my-template.yaml | clusterctl generate cluster my-cluster --from -

  # List the variables of a template
  clusterctl generate cluster my-cluster --list-variables`,
		Args: func(cmd *cobra.Command, args []string) error {
			if opts.ListVariables && len(args) == 0 {
				return nil // A template has the same variables for every cluster.
			}
			return clusterflags.OneName(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Request.ClusterName = args[0]
			}
			opts.Request.ControlPlaneMachines = given(cmd, controlPlaneMachinesFlag)
			opts.Request.WorkerMachines = given(cmd, workerMachinesFlag)
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runCluster(cmd.Context(), opts)
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	addClusterFlags(cmd, f, opts)
	return cmd
}

func addClusterFlags(cmd *cobra.Command, f *factory.Factory, opts *ClusterOptions) {
	request, source, flags := &opts.Request, &opts.Request.Source, cmd.Flags()
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	flags.StringVarP(&request.TargetNamespace, "target-namespace", "n", "",
		"The `namespace` of the workload cluster (variable NAMESPACE). Defaults to the kubeconfig's current namespace")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	flags.StringVar(&request.KubernetesVersion, "kubernetes-version", "",
		"Kubernetes `version` of the workload cluster (variable KUBERNETES_VERSION)")
	flags.Int64(controlPlaneMachinesFlag, 1, "The `number` of control plane machines (variable CONTROL_PLANE_MACHINE_COUNT)")
	flags.Int64(workerMachinesFlag, 0, "The `number` of worker machines (variable WORKER_MACHINE_COUNT)")
	flags.StringVarP(&source.Infrastructure, "infrastructure", "i", "",
		"Infrastructure `provider` whose template to use, as name or name:version")
	flags.StringVarP(&source.Flavor, "flavor", "f", "",
		"The `name` of the template in the provider's repository. Defaults to the default template")
	flags.StringVar(&source.Location, "from", "", "The `location` of a template: an https URL, a path, or - for standard input")
	flags.StringVar(&source.ConfigMap, "from-config-map", "", "The `name` of a ConfigMap with a template")
	flags.StringVarP(&source.ConfigMapNamespace, "from-config-map-namespace", "", "",
		"The `namespace` of the ConfigMap. Defaults to the kubeconfig's current namespace")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "from-config-map-namespace")
	clusterflags.CompleteConfigMaps(cmd, f, &opts.Kubeconfig, &source.ConfigMapNamespace, "from-config-map")
	flags.StringVar(&source.ConfigMapKey, "from-config-map-key", "", "The `key` of the template in the ConfigMap. Defaults to "+
		clustertemplate.DefaultConfigMapKey)
	flags.BoolVar(&opts.ListVariables, "list-variables", false, "Print the template's variables and exit")
	flags.StringVar(&opts.WriteTo, "write-to", "", "The `file` to write to, or - for standard output (the default)")
	clusterflags.CompleteProviders(cmd, f, "infrastructure", clusterctlv1.InfrastructureProviderType)
	clusterflags.CompleteWith(cmd, "flavor", func(ctx context.Context, _ []string, _ string) ([]string, error) {
		all, err := opts.Catalog(ctx)
		if err != nil {
			return nil, err
		}
		g := &clustertemplate.Generator{
			IO: iostreams.New(opts.IO.In, io.Discard, io.Discard), Catalog: all, Connect: opts.Connect, Kubeconfig: opts.Kubeconfig,
		}
		return g.Flavors(ctx, source.Infrastructure)
	})
	clusterflags.CompleteWith(cmd, "kubernetes-version", func(ctx context.Context, _ []string, _ string) ([]string, error) {
		return versionsInUse(ctx, opts)
	})
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		// The spelling in the provider contract.
		if name == "controlplane-machine-count" {
			name = controlPlaneMachinesFlag
		}
		return pflag.NormalizedName(name)
	})
}

// versionsInUse returns the Kubernetes versions of the Clusters with a topology, the newest first.
func versionsInUse(ctx context.Context, opts *ClusterOptions) ([]string, error) {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return nil, err
	}
	clusters := &clusterv1beta1.ClusterList{}
	if err := m.Client.List(ctx, clusters); err != nil {
		return nil, err
	}
	var versions []semver.Version
	for i := range clusters.Items {
		if topology := clusters.Items[i].Spec.Topology; topology != nil {
			if v, err := semver.ParseTolerant(topology.Version); err == nil {
				versions = append(versions, v)
			}
		}
	}
	slices.SortFunc(versions, func(a, b semver.Version) int { return b.Compare(a) })
	var list []string
	for _, v := range versions {
		if text := "v" + v.String(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list, nil
}

// given returns a flag's value, or nil if it is not set.
func given(cmd *cobra.Command, flag string) *int64 {
	value, err := cmd.Flags().GetInt64(flag)
	if err != nil || !cmd.Flags().Changed(flag) {
		return nil
	}
	return &value
}

func runCluster(ctx context.Context, opts *ClusterOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	g := &clustertemplate.Generator{
		IO: opts.IO, Catalog: all, Connect: opts.Connect, Kubeconfig: opts.Kubeconfig,
	}
	if opts.ListVariables {
		template, err := g.Template(ctx, opts.Request.Source)
		if err != nil {
			return err
		}
		return clustertemplate.PrintVariables(opts.IO.Out, template.Variables(), opts.Request, all.Config)
	}
	objects, err := g.Objects(ctx, opts.Request)
	if err != nil {
		return err
	}
	raw, err := manifest.Format(objects)
	if err != nil {
		return err
	}
	return opts.IO.Deliver(opts.WriteTo, raw)
}
