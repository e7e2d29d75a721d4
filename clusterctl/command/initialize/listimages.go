package initialize

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/choose"
)

// newCmdListImages returns `clusterctl init list-images`, which shares its parent's options.
func newCmdListImages(opts *Options, runF func(context.Context, *Options) error) *cobra.Command {
	return &cobra.Command{
		Use:   "list-images",
		Short: "Lists the container images required for initializing the management cluster",
		Long: `List the container images that init would need with the same flags, one per line.

If there is a management cluster, the providers that it already has are taken into account.`,
		Example: `  # List the images for an infrastructure provider and the default providers
  clusterctl init list-images --infrastructure aws

  # List the images of specific versions
  clusterctl init list-images --infrastructure vcd --core cluster-api:v2.0.0`,
		Args: clusterflags.NoArgs("--infrastructure"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return listImages(cmd.Context(), opts)
		},
	}
}

func listImages(ctx context.Context, opts *Options) error {
	planner, err := newPlanner(ctx, opts)
	if err != nil {
		return err
	}
	m, err := opts.Connect(opts.Kubeconfig)
	switch {
	case err == nil:
		switch err := m.CheckContract(ctx); {
		case err == nil, errors.Is(err, management.ErrNotInitialized):
			planner.Client = m.Client
		case !errors.Is(err, management.ErrNoKubeconfig):
			return err
		}
	case !errors.Is(err, management.ErrNoKubeconfig), opts.Kubeconfig.Path != "":
		return err
	}
	images, err := planner.Images(ctx, choose.InstallOptions{Selection: opts.Selection, TargetNamespace: opts.TargetNamespace})
	if err != nil {
		return err
	}
	for _, image := range images {
		if _, err := fmt.Fprintln(opts.IO.Out, image); err != nil {
			return err
		}
	}
	return nil
}
