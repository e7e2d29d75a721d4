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
		Long: `Resume the rollouts of a paused MachineDeployment or KubeadmControlPlane.

Changes that were made in the meantime are rolled out. The command fails if the resource is not paused.`,
		Example: `  # Resume the rollouts of a MachineDeployment
  clusterctl rollout resume machinedeployment/my-md-0

  # Resume a control plane
  clusterctl rollout resume kubeadmcontrolplane/my-kcp`,
	}
	return opts.complete(cmd, f, rollout.Types(), func(ctx context.Context) error {
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
