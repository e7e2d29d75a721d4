package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// NewPause returns the command `clusterctl rollout pause`. runF, if not nil, is run instead.
func NewPause(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := newOptions(f)
	cmd := &cobra.Command{
		Use:   "pause RESOURCE...",
		Short: "Pause a cluster-api resource",
		Long: `Pause the rollouts of a MachineDeployment or KubeadmControlPlane, or a ClusterRollout.

Of a MachineDeployment, the command sets spec.paused; a KubeadmControlPlane gets the annotation
cluster.x-k8s.io/paused. It fails if the resource is already paused.

A paused ClusterRollout changes no more Clusters; those that are in change continue.`,
		Example: `  # Pause the rollouts of a MachineDeployment
  clusterctl rollout pause machinedeployment/my-md-0

  # Pause a control plane
  clusterctl rollout pause kubeadmcontrolplane/my-kcp

  # Pause a rollout over many Clusters
  clusterctl rollout pause clusterrollout/my-rollout`,
	}
	return opts.complete(cmd, f, rollout.Pausable(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return pause(ctx, opts)
	})
}

func pause(ctx context.Context, opts *Options) error {
	return opts.forEach(ctx, "paused", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Pause(ctx, res)
	})
}
