// Package resume is the command `clusterctl alpha rollout resume`.
package resume

import (
	"context"

	"github.com/spf13/cobra"

	commands "sigs.k8s.io/cluster-api/clusterctl/command/alpha/rollout"
	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// Options are the inputs of the command.
type Options struct {
	*commands.Options
}

// NewCmd returns the command. runF, if not nil, is run instead.
func NewCmd(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Options: commands.New(f)}
	cmd := &cobra.Command{
		Use:   "resume RESOURCE...",
		Short: "Resume a cluster-api resource",
		Long: `Resume the rollouts of a paused MachineDeployment or KubeadmControlPlane.

Changes that were made in the meantime are rolled out. The command fails if the resource is not paused.`,
		Example: `  # Resume the rollouts of a MachineDeployment
  clusterctl alpha rollout resume machinedeployment/my-md-0

  # Resume a control plane
  clusterctl alpha rollout resume kubeadmcontrolplane/my-kcp`,
	}
	return opts.Complete(cmd, f, rollout.Types(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return run(ctx, opts)
	})
}

func run(ctx context.Context, opts *Options) error {
	return opts.ForEach(ctx, "resumed", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Resume(ctx, res)
	})
}
