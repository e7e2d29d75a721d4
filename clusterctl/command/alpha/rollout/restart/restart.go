// Package restart is the command `clusterctl alpha rollout restart`.
package restart

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
		Use:   "restart RESOURCE...",
		Short: "Restart a cluster-api resource",
		Long: `Replace all Machines of a MachineDeployment or KubeadmControlPlane, by the strategy of its rollout.

The command sets spec.rolloutAfter to the current time. It fails if the resource is paused, or if
spec.rolloutAfter is in the future.`,
		Example: `  # Replace the Machines of a MachineDeployment
  clusterctl alpha rollout restart machinedeployment/my-md-0

  # Replace the Machines of a control plane
  clusterctl alpha rollout restart kubeadmcontrolplane/my-kcp --namespace foo`,
	}
	return opts.Complete(cmd, f, rollout.Types(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return run(ctx, opts)
	})
}

func run(ctx context.Context, opts *Options) error {
	return opts.ForEach(ctx, "restarted", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Restart(ctx, res)
	})
}
