package upgrade

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/packages/retry"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// storageVersions are the versions in which objects can be stored.
func storageVersions() []string { return []string{"v1beta2", "v1beta1"} }

// StorageOptions are the inputs of the command.
type StorageOptions struct {
	Replacing
	// Version is one of storageVersions.
	Version string
}

// NewStorage returns the command. runF, if not nil, is run instead.
func NewStorage(f *factory.Factory, runF func(context.Context, *StorageOptions) error) *cobra.Command {
	opts := &StorageOptions{Replacing: newReplacing(f)}
	cmd := &cobra.Command{
		Use:   "storage",
		Short: "Store the objects of Cluster API in another API version",
		Long: `Store all objects of Cluster API in another version of its API.

An upgrade does not change the version in which objects are stored, so that the previous release can be installed again.
Store v1beta2 when you no longer need a way back to a release that does not have it (Cluster API v1.10 and older). To go back
before such a release is installed again, store v1beta1 (and v1alpha1 of ExtensionConfig, which has no v1beta1).

Every kind is changed in two steps: its CustomResourceDefinition, and then its objects, which are written without a change.
Controllers and clients of either version go on working. The command can safely be run again after an interruption: it
continues.`,
		Example: `  # Store all objects in v1beta2
  clusterctl upgrade storage

  # Store all objects in v1beta1 again
  clusterctl upgrade storage --storage-version v1beta1`,
		Args: clusterflags.NoArgs(""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(storageVersions(), opts.Version) {
				return fmt.Errorf("--storage-version is %q: it must be one of %v: see `%s --help`", opts.Version, storageVersions(), cmd.CommandPath())
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runStorage(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	cmd.Flags().StringVar(&opts.Version, "storage-version", storageVersions()[0], "The `version` to store: v1beta2 or v1beta1")
	return cmd
}

func runStorage(ctx context.Context, opts *StorageOptions) error {
	m, held, err := opts.connect(ctx)
	if err != nil {
		return err
	}
	return held.Hold(ctx, func(ctx context.Context) error { return turn(ctx, opts, m) })
}

// turn stores the objects of all kinds in the version.
func turn(ctx context.Context, opts *StorageOptions, m *management.Cluster) error {
	turns, err := storageversion.PlanTurns(ctx, m.Client, m.Config, opts.Version)
	if err != nil {
		return err
	}
	if len(turns) == 0 {
		opts.IO.Infof("Nothing to do: every kind already stores %s, or its newest version before that", opts.Version)
		return nil
	}
	policy := retry.Policy{Backoff: retry.Backoff(), Rereads: true}
	for i, t := range turns {
		t.Retry = policy.For("storing objects of kind " + t.Kind.Kind).Do
		opts.IO.Infof("Storing objects of kind %s in %s (%d of %d)", t.Kind.Kind, t.Kind.Version, i+1, len(turns))
		err := t.Run(ctx, m.Client, func(saved int) { opts.IO.Infof("  %d objects", saved) })
		if err != nil {
			return fmt.Errorf("%w: correct it, and run the command again to continue", err)
		}
	}
	opts.IO.Infof("Done: %d kinds are stored in another version", len(turns))
	return nil
}
