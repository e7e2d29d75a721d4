package root

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/sdk/version"
)

// versionOptions are the inputs of the command `clusterctl version`.
type versionOptions struct {
	IO     *iostreams.Streams
	Info   version.Info
	Output string
}

func newVersion(f *factory.Factory) *cobra.Command {
	opts := &versionOptions{IO: f.IO, Info: f.Version}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print clusterctl version",
		Long:  "Print the version of clusterctl, and the commit and Go version it was built with.",
		Example: `  # Print all build information
  clusterctl version

  # Print only the version
  clusterctl version -o short`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "Output `format`: short, yaml or json")
	return cmd
}

func printVersion(_ context.Context, opts *versionOptions) error {
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
