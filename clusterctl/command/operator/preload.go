package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/operator"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/choose"
	"sigs.k8s.io/cluster-api/packages/retry"
)

// PreloadOptions are the inputs of the command.
type PreloadOptions struct {
	IO         *iostreams.Streams
	Catalog    func(context.Context) (*catalog.Catalog, error)
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	Selection  choose.Selection
	Request    operator.PreloadRequest
}

// NewPreload returns the command. runF, if not nil, is run instead.
func NewPreload(f *factory.Factory, runF func(context.Context, *PreloadOptions) error) *cobra.Command {
	opts := &PreloadOptions{IO: f.IO, Catalog: f.Catalog, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "preload",
		Short: "Store releases of providers in the management cluster",
		Long: `Store releases of providers in ConfigMaps of the management cluster, so that the operator needs no network to
install them.

The operator finds the release of a provider whose spec.version is set in the ConfigMap that this command writes, whatever
its spec.fetchConfig. The releases come from the repositories of the clusterctl configuration, or from an OCI artifact.`,
		Example: `  # Store releases before the providers are declared
  clusterctl operator preload --core cluster-api --infrastructure aws:capa-system:v2.4.0

  # Store the releases of the providers that are declared
  clusterctl operator preload --existing

  # Store a release from an OCI artifact
  clusterctl operator preload --infrastructure aws:v2.4.0 --artifact-url registry.example.com/capi/aws`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.complete(); err != nil {
				return fmt.Errorf("%w: see `%s --help`", err, cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runPreload(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddKnownProviders(cmd, f, &opts.Selection, operator.Form, false)
	flags := cmd.Flags()
	flags.BoolVarP(&opts.Request.Existing, "existing", "e", false, "Store the releases of all declared providers whose version is set")
	flags.StringVarP(&opts.Request.Namespace, "target-namespace", "n", "",
		"The `namespace` of providers without one. Defaults to that of the provider's components")
	flags.StringVarP(&opts.Request.Artifact, "artifact-url", "u", "", "An OCI `artifact` with the releases, instead of the repositories")
	clusterflags.CompleteNamespaces(cmd, f, &opts.Kubeconfig, "target-namespace")
	return cmd
}

// complete checks the flags, and sets the references.
func (o *PreloadOptions) complete() error {
	if o.Request.Existing != o.Selection.Empty() {
		return errors.New("set either --existing, or --infrastructure or another type of provider")
	}
	var err error
	o.Request.References, err = operator.References(o.Selection, false)
	return err
}

func runPreload(ctx context.Context, opts *PreloadOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	opts.IO.Infof("Fetching providers")
	releases, err := operator.PlanPreload(ctx, m, all, opts.Request)
	if err != nil {
		return err
	}
	a := &operator.Applier{IO: opts.IO, Client: m.Client, Backoff: retry.Backoff()}
	for _, release := range releases {
		if err := a.Store(ctx, release); err != nil {
			return fmt.Errorf("%w; run the same command again to continue", err)
		}
		opts.IO.Infof("Stored ConfigMap %s/%s", release.Namespace, release.Name)
	}
	if len(releases) == 0 {
		opts.IO.Infof("No provider with a version is declared")
	}
	return nil
}
