package command

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	"sigs.k8s.io/cluster-api/docs/reference"
)

// newKubectl returns kubectl itself, for machines that do not have it. Like kubectl, a process that was started with the name of a plugin
// becomes the plugin here, before flags are parsed: those that follow the name are the plugin's.
func newKubectl(args []string) *cobra.Command {
	options := cmd.KubectlOptions{
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	}
	if len(args) > 1 && args[1] == "kubectl" {
		options.Arguments, options.PluginHandler = args[1:], cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes)
	}
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(options)
	kubectl.Short = "Run kubectl"
	kubectl.Args = func(c *cobra.Command, args []string) error { // As cobra does for the command of a program alone.
		if len(args) > 0 {
			return fmt.Errorf("unknown command %q for %q", args[0], c.CommandPath())
		}
		return nil
	}
	kubectl.Annotations = map[string]string{reference.Elsewhere: "https://kubernetes.io/docs/reference/kubectl/generated/"}
	kubectl.Example = "  # List the Nodes of a workload cluster\n  capi kubectl --kubeconfig demo.kubeconfig get nodes"
	return kubectl
}
