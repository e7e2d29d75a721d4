package workload

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// PrepareVersion implements connection.Workload. It is called before every Machine of a rollout, and sends requests only the
// first time.
func (c *Cluster) PrepareVersion(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane) error {
	version, err := semver.ParseTolerant(kcp.Spec.Version)
	if err != nil {
		return fmt.Errorf("parsing the version of the control plane %q: %w", kcp.Spec.Version, err)
	}
	spec, err := snapshot.SpecOf(ctx, kcp)
	if err != nil {
		return err
	}
	config := spec.ClusterConfiguration()
	encoded, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encoding the ClusterConfiguration: %w", err)
	}
	state := fmt.Sprintf("%s %x", kcp.Spec.Version, sha256.Sum256(encoded))
	if c.verified.is("prepared", state) {
		return nil
	}
	objects := slices.Concat(joinerRBAC(), kubeletRBAC(version), adminRBAC(version), kubeletClientRBAC(version))
	if err := c.ensure(ctx, objects...); err != nil {
		return err
	}
	if err := c.prepareKubelet(ctx, version); err != nil {
		return err
	}
	if err := c.prepareKubeadm(ctx, kcp.Spec.Version, config); err != nil {
		return err
	}
	c.verified.set("prepared", state)
	return nil
}
