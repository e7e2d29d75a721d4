// Package pause is the command `clusterctl alpha rollout pause`.
package pause

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
		Use:   "pause RESOURCE...",
		Short: "Pause a cluster-api resource",
		Long: `Pause the rollouts of a MachineDeployment or KubeadmControlPlane.

Of a MachineDeployment, the command sets spec.paused; a KubeadmControlPlane gets the annotation
cluster.x-k8s.io/paused. It fails if the resource is already paused.`,
		Example: `  # Pause the rollouts of a MachineDeployment
  clusterctl alpha rollout pause machinedeployment/my-md-0

  # Pause a control plane
  clusterctl alpha rollout pause kubeadmcontrolplane/my-kcp`,
	}
	return opts.Complete(cmd, f, rollout.Types(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return run(ctx, opts)
	})
}

func run(ctx context.Context, opts *Options) error {
	return opts.ForEach(ctx, "paused", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Pause(ctx, res)
	})
}
