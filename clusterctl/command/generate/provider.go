package generate

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// ProviderOptions are the inputs of the command.
type ProviderOptions struct {
	IO      *iostreams.Streams
	Catalog func(context.Context) (*catalog.Catalog, error)
	// Names are the values of the flags that name a provider; exactly one is set.
	Names           map[clusterctlv1.ProviderType]*string
	TargetNamespace string
	Describe        bool
	Raw             bool
	WriteTo         string
}

// NewProvider returns the command. runF, if not nil, is run instead.
func NewProvider(f *factory.Factory, runF func(context.Context, *ProviderOptions) error) *cobra.Command {
	opts := &ProviderOptions{IO: f.IO, Catalog: f.Catalog, Names: map[clusterctlv1.ProviderType]*string{}}
	cmd := &cobra.Command{
		Use:   "provider",
		Short: "Generate templates for provider components",
		Long: `Generate the YAML of a provider's components, as init would install them.

Variables get their values from the environment and the clusterctl configuration file.`,
		Example: `  # Generate the components of the latest or of a specific version
  clusterctl generate provider --infrastructure aws
  clusterctl generate provider --infrastructure aws:v2.4.0

  # Summarize a provider: its variables and images
  clusterctl generate provider --infrastructure aws --describe

  # Generate the components without replacing variables
  clusterctl generate provider --infrastructure aws:v2.4.0 --raw`,
		Args: clusterflags.NoArgs("--infrastructure"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runProvider(cmd.Context(), opts)
		},
	}
	addProviderFlags(cmd, f, opts)
	return cmd
}

func addProviderFlags(cmd *cobra.Command, f *factory.Factory, opts *ProviderOptions) {
	shorthands := map[clusterctlv1.ProviderType]string{
		clusterctlv1.InfrastructureProviderType: "i", clusterctlv1.BootstrapProviderType: "b", clusterctlv1.ControlPlaneProviderType: "c",
	}
	var flags []string
	for _, t := range packages.Types() {
		name := packages.Word(t)
		opts.Names[t] = cmd.Flags().StringP(name, shorthands[t], "", "A `provider` of type "+string(t)+", as name or name:version")
		clusterflags.CompleteProviders(cmd, f, name, t)
		flags = append(flags, name)
	}
	cmd.MarkFlagsMutuallyExclusive(flags...)
	cmd.MarkFlagsOneRequired(flags...)
	cmd.Flags().StringVarP(&opts.TargetNamespace, "target-namespace", "n", "",
		"The `namespace` of the provider. Defaults to the provider's own")
	clusterflags.CompleteNamespaces(cmd, f, &management.Kubeconfig{}, "target-namespace")
	cmd.Flags().BoolVar(&opts.Describe, "describe", false, "Print a summary of the provider instead")
	cmd.Flags().BoolVar(&opts.Raw, "raw", false, "Do not replace variables")
	cmd.Flags().StringVar(&opts.WriteTo, "write-to", "", "The `file` to write to, or - for standard output (the default)")
	cmd.MarkFlagsMutuallyExclusive("describe", "raw")
}

func runProvider(ctx context.Context, opts *ProviderOptions) error {
	all, err := opts.Catalog(ctx)
	if err != nil {
		return err
	}
	release, made, err := load(ctx, opts, all)
	if err != nil {
		return err
	}
	if opts.Describe {
		return opts.IO.Deliver(opts.WriteTo, describe(release, made))
	}
	raw, err := manifest.Format(made.Objects)
	if err != nil {
		return err
	}
	return opts.IO.Deliver(opts.WriteTo, raw)
}

func load(ctx context.Context, opts *ProviderOptions, all *catalog.Catalog) (*catalog.Release, *components.Components, error) {
	for _, t := range packages.Types() {
		name := *opts.Names[t]
		if name == "" {
			continue
		}
		ref, err := packages.ParseRef(name)
		if err != nil {
			return nil, nil, fmt.Errorf("--%s: %w", packages.Word(t), err)
		}
		release, err := all.Release(ctx, t, ref)
		if err != nil {
			return nil, nil, err
		}
		made, err := all.Components(ctx, release, catalog.Options{TargetNamespace: opts.TargetNamespace, Raw: opts.Raw || opts.Describe})
		if err != nil {
			return nil, nil, err
		}
		return release, made, release.Validate(ctx)
	}
	return nil, nil, fmt.Errorf("no provider specified: use one of the provider flags, for example --infrastructure aws")
}

func describe(release *catalog.Release, c *components.Components) []byte {
	var out bytes.Buffer
	folder := strings.TrimSuffix(release.Folder(), "/")
	for _, line := range [][2]string{
		{"Name:", c.Provider.Name},
		{"Type:", string(c.Provider.Type)},
		{"URL:", folder[:strings.LastIndex(folder, "/")+1]},
		{"Version:", c.Version},
		{"File:", release.ComponentsFile()},
		{"TargetNamespace:", c.TargetNamespace},
	} {
		fmt.Fprintf(&out, "%-20s%s\n", line[0], line[1])
	}
	fmt.Fprintln(&out, "Variables:")
	for _, v := range c.Variables {
		fmt.Fprintf(&out, "  - %s\n", v.Name)
	}
	fmt.Fprintln(&out, "Images:")
	for _, image := range c.Images {
		fmt.Fprintf(&out, "  - %s\n", image)
	}
	fmt.Fprintln(&out)
	return out.Bytes()
}
