package rollout

import (
	"context"

	"github.com/spf13/cobra"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
	"sigs.k8s.io/cluster-api/clusterctl/rollout"
)

// NewResume returns the command `clusterctl rollout resume`. runF, if not nil, is run instead.
func NewResume(f *factory.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := newOptions(f)
	cmd := &cobra.Command{
		Use:   "resume RESOURCE...",
		Short: "Resume a cluster-api resource",
		Long: `Resume the rollouts of a paused MachineDeployment or KubeadmControlPlane, or a paused ClusterRollout.

Changes that were made in the meantime are rolled out. The command fails if a MachineDeployment or
KubeadmControlPlane is not paused.`,
		Example: `  # Resume the rollouts of a MachineDeployment
  clusterctl rollout resume machinedeployment/my-md-0

  # Resume a control plane
  clusterctl rollout resume kubeadmcontrolplane/my-kcp

  # Resume a rollout over many Clusters
  clusterctl rollout resume clusterrollout/my-rollout`,
	}
	return opts.complete(cmd, f, rollout.Pausable(), func(ctx context.Context) error {
		if runF != nil {
			return runF(ctx, opts)
		}
		return resume(ctx, opts)
	})
}

func resume(ctx context.Context, opts *Options) error {
	return opts.forEach(ctx, "resumed", func(r *rollout.Rollouts, res rollout.Resource) error {
		return r.Resume(ctx, res)
	})
}
