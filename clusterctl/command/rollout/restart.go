package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// NewRestart returns the command `clusterctl rollout restart`. runF, if not nil, is run instead.
func NewRestart(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := newOptions(f)
	cmd := &cobra.Command{
		Use:   "restart RESOURCE...",
		Short: "Restart a cluster-api resource",
		Long: `Replace all Machines of a MachineDeployment or KubeadmControlPlane, by the strategy of its rollout.

The command sets spec.rolloutAfter to the next second. It fails if the resource is paused, or if
spec.rolloutAfter is in the future.`,
		Example: `  # Replace the Machines of a MachineDeployment
  clusterctl rollout restart machinedeployment/my-md-0

  # Replace the Machines of a control plane
  clusterctl rollout restart kubeadmcontrolplane/my-kcp --namespace foo`,
	}
	return opts.complete(cmd, f, rollout.Types(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return restart(ctx, opts)
	})
}

func restart(ctx context.Context, opts *Options) error {
	return opts.forEach(ctx, "restarted", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Restart(ctx, res)
	})
}
