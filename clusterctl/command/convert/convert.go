// Package convert has the command `clusterctl convert`.
package convert

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/clusterflags"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
	"sigs.k8s.io/cluster-api/packages"
)

// toVersion is the version that files are converted to.
const toVersion = "v1beta2"

// Options are the inputs of the command.
type Options struct {
	IO *iostreams.Streams
	// From is a path, or - for standard input; Output a path, or empty for standard output.
	From, Output string
	// ToVersion must be v1beta2.
	ToVersion string
}

// New returns the command. runF, if not nil, is run instead.
func New(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO}
	cmd := &cobra.Command{
		Use:   "convert [FILE]",
		Short: "Convert manifests of Cluster API to v1beta2",
		Long: `Convert the objects of Cluster API in a YAML file from older versions of its API to v1beta2: Clusters, ClusterClasses,
Machines and all other kinds of the core, kubeadm, add-on, IPAM and runtime groups, also in Lists. Everything else stays
byte by byte as it is.

Comments of converted objects are lost. What v1beta2 cannot express is left out, with a warning. Empty objects and lists of templates
that v1beta2 does not allow, such as apiServer: {}, stay in an annotation, because patches for v1beta1 add below them. What
patches of ClusterClasses contain is not converted: patches stay valid for the version of the templates that they select, and a
warning names those to look at.
Templates with variables are processed first: see ` + "`clusterctl generate yaml`" + `.`,
		Example: `  # Convert a file
  clusterctl convert cluster.yaml --output cluster-v1beta2.yaml

  # Convert what another command prints
  cat cluster.yaml | clusterctl convert > cluster-v1beta2.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.ToVersion != toVersion {
				return fmt.Errorf("--to-version is %q: it must be %s: see `%s --help`", opts.ToVersion, toVersion, cmd.CommandPath())
			}
			opts.From = "-"
			if len(args) > 0 {
				opts.From = args[0]
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	cmd.Flags().StringVarP(&opts.Output, "output", "o", "", "The `file` to write, with mode 0600. The default is standard output")
	clusterflags.CompleteWithFiles(cmd, "output")
	cmd.Flags().StringVar(&opts.ToVersion, "to-version", toVersion, "The `version` to convert to: only v1beta2")
	return cmd
}

func run(ctx context.Context, opts *Options) error {
	raw, err := read(opts)
	if err != nil {
		return fmt.Errorf("cannot read the manifests: %w", err)
	}
	f := &file{version: opts.ToVersion}
	out, err := f.convert(ctx, raw)
	if err != nil {
		return fmt.Errorf("nothing is converted: %w", err)
	}
	if err := opts.IO.Deliver(opts.Output, out); err != nil {
		return err
	}
	for _, w := range f.warnings {
		opts.IO.Warnf("%s", w)
	}
	opts.IO.Infof("%d objects are converted to %s, %d stay as they are", f.converted, opts.ToVersion, f.kept)
	return nil
}

// read returns the manifests, which may have the size of those of a release.
func read(opts *Options) ([]byte, error) {
	in := opts.IO.In
	if opts.From != "-" {
		opened, err := os.Open(opts.From)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	raw, err := io.ReadAll(io.LimitReader(in, packages.MaxManifests+1))
	if err == nil && len(raw) > packages.MaxManifests {
		err = packages.TooLarge(opts.From, len(raw), packages.MaxManifests)
	}
	return raw, err
}
