// Package provider is the command `clusterctl check provider`.
package provider

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/conformance"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// Options are the inputs of the command.
type Options struct {
	IO *iostreams.Streams
	// Folders hold one release each.
	Folders []string
	// Provider and Version override the names of the folders.
	Provider, Version string
	// Output is text or json.
	Output string
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "provider FOLDER...",
		Short: "Check the files of a provider's release against the contract",
		Long: `Check the files of a provider's release against the clusterctl provider contract.

A folder holds the files of one release: metadata.yaml, the components YAML, cluster templates and
ClusterClass definitions. In a local repository, its path ends with {provider label}/{version}, for example
infrastructure-aws/v2.4.0. No cluster is required.

Each finding has its file and line, and the chapter of the contract with the rule. The command fails if
there is an error; warnings are deviations from recommendations.`,
		Example: `  # Check a release in a local repository
  clusterctl check provider ~/local-repository/infrastructure-aws/v2.4.0

  # Check the files of a release before it is published
  clusterctl check provider out --provider infrastructure-aws --version v2.4.0

  # Check with a script
  clusterctl check provider ~/local-repository/infrastructure-aws/v2.4.0 -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("the folder of a release is required: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Folders = args
			if opts.Output != "text" && opts.Output != "json" {
				return fmt.Errorf("--output %q is not supported: use text or json", opts.Output)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(opts)
		},
	}
	cmd.Flags().StringVar(&opts.Provider, "provider", "", "The provider `label`, for example infrastructure-aws. Defaults to the name of the parent folder")
	cmd.Flags().StringVar(&opts.Version, "version", "", "The `version` of the release. Defaults to the name of the folder")
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "text", "Output `format`: text or json")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return cmd
}

func run(opts *Options) error {
	findings := []conformance.Finding{}
	for _, folder := range opts.Folders {
		release, err := conformance.Open(folder, opts.Provider, opts.Version)
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
		return fmt.Errorf("the provider does not meet the contract (errors: %d, warnings: %d): correct the errors, and run the command again", counts[conformance.Error], counts[conformance.Warning])
	}
	if opts.Output == "text" {
		opts.IO.Infof("The provider meets the contract (warnings: %d)", counts[conformance.Warning])
	}
	return nil
}

func write(opts *Options, findings []conformance.Finding) error {
	if opts.Output == "json" {
		encoder := json.NewEncoder(opts.IO.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(findings)
	}
	for _, f := range findings {
		if _, err := fmt.Fprintln(opts.IO.Out, f); err != nil {
			return err
		}
	}
	return nil
}
