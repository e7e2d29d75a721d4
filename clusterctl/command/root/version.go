package root

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

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

  # Print one line
  clusterctl version -o text

  # Print only the version
  clusterctl version -o short`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "",
		"Output `format`: text, short, yaml or json. Defaults to the one of previous versions")
	clusterflags.CompleteValues(cmd, "output", "text", "short", "yaml", "json")
	return cmd
}

func printVersion(_ context.Context, opts *versionOptions) error {
	result := map[string]*version.Info{"clusterctl": &opts.Info}
	var raw []byte
	switch opts.Output {
	case "":
		raw = fmt.Appendf(nil, "clusterctl version: %#v", &opts.Info)
	case "text":
		raw = []byte(opts.Info.Sentence("clusterctl"))
	case "short":
		raw = []byte(opts.Info.GitVersion)
	case "yaml", "json":
		return clusterflags.Print(opts.IO.Out, opts.Output, result)
	default:
		return fmt.Errorf("--output %q is not supported: use text, short, yaml or json", opts.Output)
	}
	_, err := fmt.Fprintln(opts.IO.Out, string(raw))
	return err
}
