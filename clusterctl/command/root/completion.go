package root

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/iostreams"
)

// completionOptions are the inputs of the command `clusterctl completion`.
type completionOptions struct {
	IO *iostreams.Streams
	// Root is the command line to complete.
	Root  *cobra.Command
	Shell string
}

func newCompletion(f *factory.Factory) *cobra.Command {
	opts := &completionOptions{IO: f.IO}
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
			return printCompletion(cmd.Context(), opts)
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

func printCompletion(_ context.Context, opts *completionOptions) error {
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
