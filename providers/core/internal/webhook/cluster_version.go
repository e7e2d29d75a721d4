package webhook

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/check"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// notAtVersion returns which parts of a Cluster do not have a version or are being upgraded, as reasons not to start an upgrade
// to the next minor version.
func (w *Cluster) notAtVersion(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	reasons, err := w.controlPlaneNotAtVersion(ctx, cluster, version)
	if err != nil {
		return nil, err
	}
	owned := []client.ListOption{
		ownership.InCluster(cluster.Namespace, cluster.Name),
		client.HasLabels{clusterv1.ClusterTopologyOwnedLabel},
	}
	deployments, err := w.deploymentsNotAtVersion(ctx, version, owned)
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, deployments...)
	if !w.options.MachinePool {
		return reasons, nil
	}
	pools, err := w.poolsNotAtVersion(ctx, cluster, version, owned)
	return append(reasons, pools...), err
}

func (w *Cluster) controlPlaneNotAtVersion(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	ref := cluster.Spec.ControlPlaneRef
	if ref == nil {
		return nil, nil // nothing has been created yet
	}
	object, err := w.options.Object(ctx, ref, cluster.Namespace)
	if err != nil {
		return nil, fmt.Errorf("reading the control plane: %w", err)
	}
	cp := contract.ControlPlaneOf(object)
	name := fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
	current, err := cp.Version()
	if err != nil {
		return nil, err
	}
	if current != nil && differ(*current, version) {
		return []string{fmt.Sprintf("%s has version %s", name, *current)}, nil
	}
	if provisioning, err := cp.IsProvisioning(); err != nil || provisioning {
		return []string{name + " is being provisioned"}, err
	}
	if upgrading, err := cp.IsUpgrading(); err != nil || upgrading {
		return []string{name + " is being upgraded"}, err
	}
	return nil, nil
}

// differ reports whether two versions differ. An invalid version differs from every version.
func differ(a, b string) bool {
	order, err := contract.CompareVersions(a, b)
	return err != nil || order != 0
}

func (w *Cluster) deploymentsNotAtVersion(ctx context.Context, version string, owned []client.ListOption) ([]string, error) {
	deployments := &clusterv1.MachineDeploymentList{}
	if err := w.options.Reader.List(ctx, deployments, owned...); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	if len(deployments.Items) == 0 {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := w.options.Reader.List(ctx, machines,
		append(slices.Clip(owned), client.HasLabels{clusterv1.ClusterTopologyMachineDeploymentNameLabel})...); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	mixed := map[string]bool{} // topology names of MachineDeployments with Machines of another version
	for i := range machines.Items {
		if at := machines.Items[i].Spec.Version; at != nil && differ(*at, version) {
			mixed[machines.Items[i].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] = true
		}
	}
	var reasons []string
	for i := range deployments.Items {
		md := &deployments.Items[i]
		if at := md.Spec.Template.Spec.Version; at != nil && differ(*at, version) {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has version %s", md.Name, *at))
		} else if mixed[md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has Machines with another version", md.Name))
		}
	}
	slices.Sort(reasons)
	return reasons, nil
}

func (w *Cluster) poolsNotAtVersion(
	ctx context.Context, cluster *clusterv1.Cluster, version string, owned []client.ListOption,
) ([]string, error) {
	pools := &clusterv1.MachinePoolList{}
	if err := w.options.Reader.List(ctx, pools, owned...); err != nil {
		return nil, fmt.Errorf("listing MachinePools: %w", err)
	}
	if len(pools.Items) == 0 {
		return nil, nil
	}
	workload, err := w.options.Workload(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return nil, fmt.Errorf("connecting to the Cluster for the versions of the Nodes of MachinePools: %w", err)
	}
	var reasons []string
	for i := range pools.Items {
		reason, err := poolNotAtVersion(ctx, &pools.Items[i], version, workload)
		if err != nil {
			return nil, err
		}
		if reason != "" {
			reasons = append(reasons, reason)
		}
	}
	slices.Sort(reasons)
	return reasons, nil
}

func poolNotAtVersion(ctx context.Context, pool *clusterv1.MachinePool, version string, workload client.Reader) (string, error) {
	if at := pool.Spec.Template.Spec.Version; at != nil && differ(*at, version) {
		return fmt.Sprintf("MachinePool %s has version %s", pool.Name, *at), nil
	}
	for i := range pool.Status.NodeRefs {
		node := &corev1.Node{}
		if err := workload.Get(ctx, client.ObjectKey{Name: pool.Status.NodeRefs[i].Name}, node); err != nil {
			return "", fmt.Errorf("reading Node %s of MachinePool %s: %w", pool.Status.NodeRefs[i].Name, pool.Name, err)
		}
		if kubelet := node.Status.NodeInfo.KubeletVersion; !check.KubeletHasVersion(kubelet, version) {
			return fmt.Sprintf("MachinePool %s: Node %s has version %s", pool.Name, node.Name, kubelet), nil
		}
	}
	return "", nil
}
