// Command writedocs writes or serves the book with the reference pages of all programs. The book of clusterctl and that of capi only have
// the pages of what each has in it.
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/command/root"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	docs "sigs.k8s.io/cluster-api/docs/command"
	"sigs.k8s.io/cluster-api/docs/manual"
	"sigs.k8s.io/cluster-api/docs/reference"
	"sigs.k8s.io/cluster-api/sdk/version"
	"sigs.k8s.io/cluster-api/standalone"
	"sigs.k8s.io/cluster-api/standalone/internal/command"
)

func main() {
	cmd := docs.New("docs", version.Get(), pages, nil)
	cmd.Flags().String("repository", ".", "The `root` of the repository, whose source code and CustomResourceDefinitions become pages")
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
}

// pages returns the generated pages of clusterctl, of capi, of what the source code declares, and of the API.
func pages(cmd *cobra.Command) ([]manual.Generated, error) {
	clusterctl := root.NewCmd(factory.New(iostreams.System(factory.Environment), factory.Environment, nil))
	hosted, err := standalone.Reference(command.New(standalone.Components(), nil))
	if err != nil {
		return nil, err
	}
	repository := os.DirFS(cmd.Flag("repository").Value.String())
	source, err := reference.Source(repository)
	if err != nil {
		return nil, err
	}
	api, err := reference.API(repository, "providers/*/config/crd/*.yaml")
	return slices.Concat([]manual.Generated{reference.Commands(clusterctl)}, hosted, source, api), err
}
