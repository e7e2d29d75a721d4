package takeover

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/clusterctl/management"
	"sigs.k8s.io/cluster-api/clusterctl/takeover/record"
)

// RecordOptions are the inputs of the command.
type RecordOptions struct {
	IO         *iostreams.Streams
	Connect    func(management.Kubeconfig) (*management.Cluster, error)
	Kubeconfig management.Kubeconfig
	// Namespace is that of the Cluster; empty: that of the kubeconfig's context.
	Namespace, Cluster string
	// Directory receives the files, whose names begin with State.
	Directory, State string
}

// NewRecord returns the command. runF, if not nil, is run instead.
func NewRecord(f *factory.Factory, runF func(context.Context, *RecordOptions) error) *cobra.Command {
	opts := &RecordOptions{IO: f.IO, Connect: f.Connect}
	cmd := &cobra.Command{
		Use:   "record CLUSTER --directory DIRECTORY",
		Short: "Write the objects of a Cluster to files, without secrets, as a reference for tests",
		Long: `Write all objects of a Cluster to files, as the API server returns them in each version that it serves. Tests of this project load
such files, and check that its managers take over these objects without a write.

Data of Secrets, contents of files, passwords and tokens are replaced. Read the files nevertheless before you share them: names,
addresses and commands remain.`,
		Example: `  # Record a Cluster that Cluster API v1.9.3 manages, while nothing changes
  clusterctl takeover record my-cluster --directory ./recorded/v1.9.3 --state 2-at-rest`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: clusterflags.ClusterNames(f, &opts.Kubeconfig, &opts.Namespace),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Cluster = args[0]
			if opts.Directory == "" {
				return errors.New("--directory is required, where the files are written to, such as ./recorded/v1.9.3")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return runRecord(cmd.Context(), opts)
		},
	}
	clusterflags.AddKubeconfig(cmd, &opts.Kubeconfig, false)
	clusterflags.AddNamespace(cmd, f, &opts.Kubeconfig, &opts.Namespace)
	cmd.Flags().StringVar(&opts.Directory, "directory", "", "The `directory` for the files, named after the version of Cluster API")
	cmd.Flags().StringVar(&opts.State, "state", "2-at-rest", "What the Cluster does: the first part of the files' `names`")
	return cmd
}

func runRecord(ctx context.Context, opts *RecordOptions) error {
	m, err := opts.Connect(opts.Kubeconfig)
	if err != nil {
		return err
	}
	recording, err := record.Read(ctx, m.Client, m.Key(opts.Namespace, opts.Cluster))
	if err != nil {
		return err
	}
	files, err := recording.Write(opts.Directory, opts.State)
	if err != nil {
		return err
	}
	for _, file := range files {
		_, _ = fmt.Fprintln(opts.IO.Out, file)
	}
	opts.IO.Infof("%d objects in %d files: read them before you share them", recording.Objects(), len(files))
	return nil
}
