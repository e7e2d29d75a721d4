package webhook

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/desired"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/lifecycle"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/ownership"
)

// notAtVersion returns which parts of a Cluster do not have a version or are being upgraded, and whether a hook waits for the end of the
// upgrade, as reasons not to start another one. Pinned workers only have to be new enough for the version in the topology.
func (w *Cluster) notAtVersion(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	reasons, err := w.controlPlaneNotAtVersion(ctx, cluster, version)
	if err != nil {
		return nil, err
	}
	if w.options.RuntimeSDK && lifecycle.IsPending(cluster, lifecycle.AfterClusterUpgrade) {
		reasons = append(reasons, fmt.Sprintf("hook %s is still to be called", lifecycle.AfterClusterUpgrade))
	}
	owned := []client.ListOption{
		ownership.InCluster(cluster.Namespace, cluster.Name),
		client.HasLabels{clusterv1.ClusterTopologyOwnedLabel},
	}
	deployments, err := w.deploymentsNotAtVersion(ctx, expectedVersions(cluster, version), owned)
	if err != nil {
		return nil, err
	}
	reasons = append(reasons, deployments...)
	if !w.options.MachinePool {
		return reasons, nil
	}
	pools, err := w.poolsNotAtVersion(ctx, cluster, expectedVersions(cluster, version), owned)
	return append(reasons, pools...), err
}

func (w *Cluster) controlPlaneNotAtVersion(ctx context.Context, cluster *clusterv1.Cluster, version string) ([]string, error) {
	ref := &cluster.Spec.ControlPlaneRef
	if !ref.IsDefined() {
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

func (w *Cluster) deploymentsNotAtVersion(ctx context.Context, expected expected, owned []client.ListOption) ([]string, error) {
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
	mixed := map[string]string{} // a version of Machines that is not as expected, by the topology names of their MachineDeployments
	for i := range machines.Items {
		at, name := machines.Items[i].Spec.Version, machines.Items[i].Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
		if at != "" && expected.of(desired.MachineDeploymentKind, name).differs(at) {
			mixed[name] = at
		}
	}
	var reasons []string
	for i := range deployments.Items {
		md := &deployments.Items[i]
		name := md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
		group := expected.of(desired.MachineDeploymentKind, name)
		if at := md.Spec.Template.Spec.Version; at != "" && group.differs(at) {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has version %s%s", md.Name, at, group.advice()))
		} else if at := mixed[name]; at != "" && group.pinned {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has Machines with version %s%s", md.Name, at, group.advice()))
		} else if at != "" {
			reasons = append(reasons, fmt.Sprintf("MachineDeployment %s has Machines with another version", md.Name))
		}
	}
	slices.Sort(reasons)
	return reasons, nil
}

func (w *Cluster) poolsNotAtVersion(
	ctx context.Context, cluster *clusterv1.Cluster, expected expected, owned []client.ListOption,
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
		pool := &pools.Items[i]
		group := expected.of(desired.MachinePoolKind, pool.Labels[clusterv1.ClusterTopologyMachinePoolNameLabel])
		reason, err := poolNotAtVersion(ctx, pool, group, workload)
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

func poolNotAtVersion(
	ctx context.Context, pool *clusterv1.MachinePool, group expectedOfGroup, workload client.Reader,
) (string, error) {
	if at := pool.Spec.Template.Spec.Version; at != "" && group.differs(at) {
		return fmt.Sprintf("MachinePool %s has version %s%s", pool.Name, at, group.advice()), nil
	}
	for i := range pool.Status.NodeRefs {
		node := &corev1.Node{}
		if err := workload.Get(ctx, client.ObjectKey{Name: pool.Status.NodeRefs[i].Name}, node); err != nil {
			return "", fmt.Errorf("reading Node %s of MachinePool %s: %w", pool.Status.NodeRefs[i].Name, pool.Name, err)
		}
		if kubelet := node.Status.NodeInfo.KubeletVersion; !group.kubeletIsRight(kubelet) {
			return fmt.Sprintf("MachinePool %s: Node %s has version %s%s", pool.Name, node.Name, kubelet, group.advice()), nil
		}
	}
	return "", nil
}

// controlPlane returns the control plane object and its version. The version is empty if there is none, or if it cannot be read: what
// depends on it is advice.
func (w *Cluster) controlPlane(ctx context.Context, cluster *clusterv1.Cluster) (contract.ControlPlane, string) {
	none := contract.ControlPlane{}
	if !cluster.Spec.ControlPlaneRef.IsDefined() {
		return none, ""
	}
	object, err := w.options.Object(ctx, &cluster.Spec.ControlPlaneRef, cluster.Namespace)
	if err != nil {
		return none, ""
	}
	cp := contract.ControlPlaneOf(object)
	version, err := cp.Version()
	if err != nil || version == nil {
		return none, ""
	}
	return cp, *version
}

// wayBack adds to the errors of a lower version how to go back from a version that the control plane has not got, such as one that its own
// validation rejects.
func (w *Cluster) wayBack(ctx context.Context, cluster *clusterv1.Cluster, was string, errs field.ErrorList) field.ErrorList {
	is := cluster.Spec.Topology.Version
	if order, err := contract.CompareVersions(is, was); err != nil || order >= 0 {
		return errs
	}
	cp, has := w.controlPlane(ctx, cluster)
	if has == "" || differ(has, is) {
		return errs
	}
	for _, e := range errs {
		e.Detail += fmt.Sprintf(". %s %s still has version %s: if it rejects %s, go back with annotation %s",
			cp.GetKind(), cp.GetName(), has, was, clusterv1.ClusterTopologyUnsafeUpdateVersionAnnotation)
	}
	return errs
}

// frozenRegistry warns of a version that a KubeadmControlPlane rejects without an image repository. It is no error, because patches of the
// class may set one.
func (w *Cluster) frozenRegistry(ctx context.Context, cluster *clusterv1.Cluster) admission.Warnings {
	version := cluster.Spec.Topology.Version
	to, err := semver.ParseTolerant(version)
	if err != nil {
		return nil
	}
	fixed, frozen := kubeadm.FrozenRegistry(to)
	if !frozen {
		return nil
	}
	cp, _ := w.controlPlane(ctx, cluster)
	if cp.Unstructured == nil || cp.GetKind() != "KubeadmControlPlane" {
		return nil
	}
	if repository, _, _ := unstructured.NestedString(cp.Unstructured.Object, "spec", "kubeadmConfigSpec", "clusterConfiguration",
		"imageRepository"); repository != "" {
		return nil
	}
	return admission.Warnings{fmt.Sprintf("kubeadm of %s pulls from the registry k8s.gcr.io, which is frozen: %s %s rejects the version "+
		"unless ClusterClass %s sets clusterConfiguration.imageRepository. Use a newer patch version, such as v%s",
		version, cp.GetKind(), cp.GetName(), cluster.Spec.Topology.ClassRef.Name, fixed)}
}
