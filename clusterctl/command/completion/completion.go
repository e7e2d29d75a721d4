// Package completion is the command `clusterctl completion`.
package completion

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// Options are the inputs of the command.
type Options struct {
	IO *iostreams.Streams
	// Root is the command line to complete.
	Root  *cobra.Command
	Shell string
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{IO: f.IO}
	return &cobra.Command{
		Use:   "completion {bash|zsh|fish}",
		Short: "Output shell completion code for the specified shell (bash, zsh or fish)",
		Long: `Output shell completion code for clusterctl's commands and flags, and for the names of kubeconfig
contexts, namespaces, clusters and providers.`,
		Example: `  # Load completion into the current bash (requires bash-completion)
  source <(clusterctl completion bash)

  # Load completion into every bash
  clusterctl completion bash > ~/.clusterctl-completion
  echo 'source ~/.clusterctl-completion' >> ~/.bashrc

  # Load completion into every zsh
  clusterctl completion zsh > "${fpath[1]}/_clusterctl"

  # Load completion into every fish
  clusterctl completion fish > ~/.config/fish/completions/clusterctl.fish`,
		Args:                  oneShell,
		ValidArgs:             shells(),
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Root, opts.Shell = cmd.Root(), args[0]
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

func oneShell(cmd *cobra.Command, args []string) error {
	known := strings.Join(shells(), ", ")
	switch {
	case len(args) == 0:
		return fmt.Errorf("a shell is required: use one of %s; see `%s --help`", known, cmd.CommandPath())
	case len(args) > 1 || !slices.Contains(shells(), args[0]):
		return fmt.Errorf("shell %q is not supported: use one of %s", strings.Join(args, " "), known)
	}
	return nil
}

func run(_ context.Context, opts *Options) error {
	switch opts.Shell {
	case "bash":
		return opts.Root.GenBashCompletionV2(opts.IO.Out, true)
	case "zsh":
		if err := opts.Root.GenZshCompletion(opts.IO.Out); err != nil {
			return err
		}
		// The generated file registers itself when it is in fpath, but not when it is sourced.
		_, err := fmt.Fprintln(opts.IO.Out, "compdef _clusterctl clusterctl")
		return err
	default:
		return opts.Root.GenFishCompletion(opts.IO.Out, true)
	}
}
