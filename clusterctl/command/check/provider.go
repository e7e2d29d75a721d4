// Package check is the command `clusterctl check provider`.
package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/conformance"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// Options are the inputs of the command.
type Options struct {
	IO     *iostreams.Streams
	Config func(context.Context) (*config.Config, error)
	Store  func(context.Context) (*repository.Store, error)
	// Releases are folders that hold one release each, and URLs of components files.
	Releases []string
	// Provider and Version override the names of the folders, or the parts of the URLs.
	Provider, Version string
	// Output is text, json or yaml.
	Output string
}

// NewProvider returns the command. runF, if not nil, is run instead.
func NewProvider(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Config: f.Config, Store: f.Store}
	cmd := &cobra.Command{
		Use:   "provider {FOLDER|URL}...",
		Short: "Check the files of a provider's release against the contract",
		Long: `Check the files of a provider's release against the clusterctl provider contract.

A folder holds the files of one release: metadata.yaml, the components YAML, cluster templates and
ClusterClass definitions. In a local repository, its path ends with {provider label}/{version}, for example
infrastructure-aws/v2.4.0. A URL is that of a provider in the configuration file: the components YAML of a
release on GitHub or GitLab, with a version or latest. Its files are downloaded; files in the overrides
folder are ignored. No cluster is required.

Each finding has its file and line, and the chapter of the contract with the rule. The command fails if
there is an error; warnings are deviations from recommendations.`,
		Example: `  # Check a release in a local repository
  clusterctl check provider ~/local-repository/infrastructure-aws/v2.4.0

  # Check the files of a release before it is published
  clusterctl check provider out --provider infrastructure-aws --version v2.4.0

  # Check a published release
  clusterctl check provider https://github.com/my-org/my-provider/releases/v2.4.0/infrastructure-components.yaml \
    --provider infrastructure-my

  # Check with a script
  clusterctl check provider ~/local-repository/infrastructure-aws/v2.4.0 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("the folder or URL of a release is required: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Releases = args
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVar(&opts.Provider, "provider", "", "The provider `label`, "+
		"for example infrastructure-aws. Defaults to the name of the parent folder, or to the configured provider with the URL")
	cmd.Flags().StringVar(&opts.Version, "version", "",
		"The `version` of the release. Defaults to the name of the folder, or to the version in the URL")
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

// open returns the release in a folder, or downloads the one at a URL.
func open(ctx context.Context, opts *Options, where string) (*conformance.Release, error) {
	if !strings.Contains(where, "://") {
		return conformance.Open(where, opts.Provider, opts.Version)
	}
	p, err := providerAt(ctx, opts, where)
	if err != nil {
		return nil, err
	}
	store, err := opts.Store(ctx)
	if err != nil {
		return nil, err
	}
	client, err := store.Published().Open(p)
	if err != nil {
		return nil, err
	}
	opts.IO.Infof("Downloading %s", where)
	return conformance.Download(ctx, client, opts.Version)
}

// providerAt returns the provider whose release is at a URL: that of --provider, or a configured one.
func providerAt(ctx context.Context, opts *Options, where string) (packages.Provider, error) {
	if opts.Provider != "" {
		p, err := conformance.ParseLabel(opts.Provider)
		if err != nil {
			return p, fmt.Errorf("--provider: %w", err)
		}
		p.URL = where
		return p, nil
	}
	conf, err := opts.Config(ctx)
	if err != nil {
		return packages.Provider{}, err
	}
	var found []packages.Provider
	for _, p := range conf.Providers {
		if p.URL == where {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return packages.Provider{},
			fmt.Errorf("cannot determine the provider of %s: set its label, for example --provider infrastructure-aws", where)
	}
	return found[0], nil
}

func run(ctx context.Context, opts *Options) error {
	findings := []conformance.Finding{}
	for _, where := range opts.Releases {
		release, err := open(ctx, opts, where)
		if err != nil {
			return err
		}
		found, err := release.Check()
		if err != nil {
			return err
		}
		findings = append(findings, found...)
	}
	if err := write(opts, findings); err != nil {
		return err
	}
	counts := map[conformance.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	if counts[conformance.Error] > 0 {
		return fmt.Errorf("the provider does not meet the contract (errors: %d, warnings: %d): correct the errors, and run the command again",
			counts[conformance.Error], counts[conformance.Warning])
	}
	if opts.Output == "text" {
		opts.IO.Infof("The provider meets the contract (warnings: %d)", counts[conformance.Warning])
	}
	return nil
}

func write(opts *Options, findings []conformance.Finding) error {
	if opts.Output != "text" {
		return clusterflags.Print(opts.IO.Out, opts.Output, findings)
	}
	for _, f := range findings {
		if _, err := fmt.Fprintln(opts.IO.Out, f); err != nil {
			return err
		}
	}
	return nil
}
