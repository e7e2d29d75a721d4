package root

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages/config"
)

// repositoriesOptions are the inputs of the command `clusterctl config repositories`.
type repositoriesOptions struct {
	IO     *iostreams.Streams
	Config func(context.Context) (*config.Config, error)
	Output string
}

// repositoryEntry is one provider in the yaml output; its fields' names are the output's keys.
type repositoryEntry struct {
	Name, ProviderType, URL, File string
}

func newRepositories(f *factory.Factory) *cobra.Command {
	opts := &repositoriesOptions{IO: f.IO, Config: f.Config}
	cmd := &cobra.Command{
		Use:   "repositories",
		Short: "Display the list of providers and their repository configurations",
		Long: `Display the available providers and their repositories: the built-in ones, and those that the
configuration file overrides or adds.`,
		Example: `  # Print a table
  clusterctl config repositories

  # Print YAML
  clusterctl config repositories -o yaml`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printRepositories(cmd.Context(), opts)
		},
	}
	clusterflags.AddOutput(cmd, &opts.Output, "text", "json", "yaml")
	return cmd
}

func printRepositories(ctx context.Context, opts *repositoriesOptions) error {
	c, err := opts.Config(ctx)
	if err != nil {
		return err
	}
	var entries []repositoryEntry
	for _, p := range c.Providers {
		split := strings.LastIndex(p.URL, "/") + 1
		entries = append(entries, repositoryEntry{Name: p.Name, ProviderType: string(p.Type), URL: p.URL[:split], File: p.URL[split:]})
	}
	if opts.Output != "text" {
		return clusterflags.Print(opts.IO.Out, opts.Output, entries)
	}
	w := tabwriter.NewWriter(opts.IO.Out, 10, 4, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tTYPE\tURL\tFILE")
	for _, e := range entries {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", e.Name, e.ProviderType, e.URL, e.File)
	}
	return w.Flush()
}
