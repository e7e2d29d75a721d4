package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/contract"
)

// unsettled tells what of a Cluster is not at a version, or on the way to it or from it: reasons not to
// begin an upgrade to the next minor version. An error means that it could not be found out.
func (w *Webhook) unsettled(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	reasons, err := w.controlPlaneUnsettled(ctx, cluster, version)
	if err != nil {
		return nil, err
	}
	owned := []client.ListOption{
		client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name},
		client.HasLabels{clusterv1.ClusterTopologyOwnedLabel},
	}
	deployments, err := w.deploymentsUnsettled(ctx, version, owned)
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, deployments...)
	if !w.options.MachinePool {
		return reasons, nil
	}
	pools, err := w.poolsUnsettled(ctx, cluster, version, owned)
	return append(reasons, pools...), err
}

func (w *Webhook) controlPlaneUnsettled(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	ref := cluster.Spec.ControlPlaneRef
	if ref == nil {
		return nil, nil // nothing has been made at any version yet
	}
	object, err := w.options.Object(ctx, ref, cluster.Namespace)
	if err != nil {
		return nil, fmt.Errorf("the version of the control plane is not known: %w", err)
	}
	cp := contract.ControlPlaneOf(object)
	name := fmt.Sprintf("%s %s", object.GetKind(), object.GetName())
	has, err := cp.Version()
	if err != nil {
		return nil, err
	}
	if has != nil && differ(*has, version) {
		return []string{fmt.Sprintf("%s has version %s", name, *has)}, nil
	}
	if provisioning, err := cp.IsProvisioning(); err != nil || provisioning {
		return []string{name + " is being provisioned"}, err
	}
	if upgrading, err := cp.IsUpgrading(); err != nil || upgrading {
		return []string{name + " is being upgraded"}, err
	}
	return nil, nil
}

// differ reports whether two versions are not the same; one that cannot be read is not.
func differ(a, b string) bool {
	order, err := contract.CompareVersions(a, b)
	return err != nil || order != 0
}

func (w *Webhook) deploymentsUnsettled(ctx context.Context, version string, owned []client.ListOption) ([]string, error) {
	deployments := &clusterv1.MachineDeploymentList{}
	if err := w.options.Reader.List(ctx, deployments, owned...); err != nil {
		return nil, fmt.Errorf("listing MachineDeployments: %w", err)
	}
	if len(deployments.Items) == 0 {
		return nil, nil
	}
	machines := &clusterv1.MachineList{}
	if err := w.options.Reader.List(ctx, machines, append(slices.Clip(owned), client.HasLabels{clusterv1.ClusterTopologyMachineDeploymentNameLabel})...); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	behind := map[string]bool{}
	for i := range machines.Items {
		if at := machines.Items[i].Spec.Version; at != nil && differ(*at, version) {
			behind[machines.Items[i].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] = true
		}
	}
	var reasons []string
	for i := range deployments.Items {
		md := &deployments.Items[i]
		if at := md.Spec.Template.Spec.Version; at != nil && differ(*at, version) {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has version %s", md.Name, *at))
		} else if behind[md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]] {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has Machines of another version", md.Name))
		}
	}
	slices.Sort(reasons)
	return reasons, nil
}

func (w *Webhook) poolsUnsettled(ctx context.Context, cluster *clusterv1.Cluster, version string, owned []client.ListOption) ([]string, error) {
	pools := &clusterv1.MachinePoolList{}
	if err := w.options.Reader.List(ctx, pools, owned...); err != nil {
		return nil, fmt.Errorf("listing MachinePools: %w", err)
	}
	if len(pools.Items) == 0 {
		return nil, nil
	}
	workload, err := w.options.Workload(ctx, client.ObjectKeyFromObject(cluster))
	if err != nil {
		return nil, fmt.Errorf("the versions of the Nodes of MachinePools are not known: %w", err)
	}
	var reasons []string
	for i := range pools.Items {
		reason, err := poolUnsettled(ctx, &pools.Items[i], version, workload)
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

func poolUnsettled(ctx context.Context, pool *clusterv1.MachinePool, version string, workload client.Reader) (string, error) {
	if at := pool.Spec.Template.Spec.Version; at != nil && differ(*at, version) {
		return fmt.Sprintf("MachinePool %s has version %s", pool.Name, *at), nil
	}
	for i := range pool.Status.NodeRefs {
		node := &corev1.Node{}
		if err := workload.Get(ctx, client.ObjectKey{Name: pool.Status.NodeRefs[i].Name}, node); err != nil {
			return "", fmt.Errorf("reading Node %s of MachinePool %s: %w", pool.Status.NodeRefs[i].Name, pool.Name, err)
		}
		if kubelet := node.Status.NodeInfo.KubeletVersion; differ(withoutBuild(kubelet), withoutBuild(version)) {
			return fmt.Sprintf("MachinePool %s: Node %s has version %s", pool.Name, node.Name, kubelet), nil
		}
	}
	return "", nil
}

// withoutBuild drops build metadata, which distributions do not always put into their kubelets.
func withoutBuild(version string) string {
	bare, _, _ := strings.Cut(version, "+")
	return bare
}
