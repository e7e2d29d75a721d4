// Package version is the command `clusterctl version`.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// Options are the inputs of the command.
type Options struct {
	IO     *iostreams.Streams
	Info   version.Info
	Output string
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO, Info: f.Version}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print clusterctl version",
		Long:  "Print the version of clusterctl, and the commit and Go version it was built with.",
		Example: `  # Print all build information
  clusterctl version

  # Print only the version
  clusterctl version -o short`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "Output `format`: short, yaml or json")
	return cmd
}

func run(_ context.Context, opts *Options) error {
	result := map[string]*version.Info{"clusterctl": &opts.Info}
	var err error
	var raw []byte
	switch opts.Output {
	case "":
		raw = fmt.Appendf(nil, "clusterctl version: %#v", &opts.Info)
	case "short":
		raw = []byte(opts.Info.GitVersion)
	case "yaml":
		raw, err = yaml.Marshal(result)
	case "json":
		raw, err = json.MarshalIndent(result, "", "  ")
	default:
		return fmt.Errorf("--output %q is not supported: use short, yaml or json", opts.Output)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(opts.IO.Out, strings.TrimSpace(string(raw)))
	return err
}
