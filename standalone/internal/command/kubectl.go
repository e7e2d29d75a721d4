package command

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"

	"sigs.k8s.io/cluster-api/docs/reference"
)

// newKubectl returns kubectl itself, for machines that do not have it.
func newKubectl() *cobra.Command {
	kubectl := cmd.NewKubectlCommand(cmd.KubectlOptions{
		Arguments:   os.Args[1:],
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	})
	kubectl.Short = "Run kubectl"
	kubectl.Annotations = map[string]string{reference.Elsewhere: "https://kubernetes.io/docs/reference/kubectl/generated/"}
	kubectl.Example = "  # List the Nodes of a workload cluster\n  capi kubectl --kubeconfig demo.kubeconfig get nodes"
	return kubectl
}
