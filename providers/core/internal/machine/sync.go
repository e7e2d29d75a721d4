package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// syncNode updates the Machine's annotations, labels and taints on the Node, with one patch, and only if they differ.
func (c *Controller) syncNode(ctx context.Context, s *scope, workload client.Writer, node *corev1.Node) error {
	m := s.machine
	family, err := c.family(ctx, s)
	if err != nil {
		return err
	}
	interruptible, err := c.interruptible(ctx, s)
	if err != nil {
		return err
	}
	after := node.DeepCopy()
	annotate(after, m)
	syncLabels(after, m)
	if _, exists := after.Labels[clusterv1.InterruptibleLabel]; interruptible && !exists {
		after.Labels[clusterv1.InterruptibleLabel] = ""
		step.Event(ctx, "SuccessfulSetInterruptibleNodeLabel", "%s", node.Name)
	}
	remote.SetTaint(after, clusterv1.NodeUninitializedTaint, false)
	remote.SetTaint(after, clusterv1.NodeOutdatedRevisionTaint, family.outdated())
	if err := remote.PatchNode(ctx, workload, node, after); err != nil {
		return fmt.Errorf("updating labels, annotations and taints of Node %s: %w", node.Name, err)
	}
	return nil
}

func annotate(node *corev1.Node, m *clusterv1.Machine) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[clusterv1.ClusterNameAnnotation] = m.Spec.ClusterName
	node.Annotations[clusterv1.ClusterNamespaceAnnotation] = m.Namespace
	node.Annotations[clusterv1.MachineAnnotation] = m.Name
	if owner := metav1.GetControllerOf(m); owner != nil {
		node.Annotations[clusterv1.OwnerKindAnnotation] = owner.Kind
		node.Annotations[clusterv1.OwnerNameAnnotation] = owner.Name
	}
}

// syncLabels copies the Machine's labels that belong on Nodes, and removes those that it copied before and that the Machine no
// longer has.
func syncLabels(node *corev1.Node, m *clusterv1.Machine) {
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	synced := map[string]string{}
	for key, value := range m.Labels {
		if syncsToNode(key) {
			synced[key] = value
		}
	}
	for key := range strings.SplitSeq(node.Annotations[clusterv1.LabelsFromMachineAnnotation], ",") {
		// Users of the workload cluster can edit the annotation: never remove labels that cannot come from Machines.
		if _, ok := synced[key]; !ok && syncsToNode(key) {
			delete(node.Labels, key)
		}
	}
	maps.Copy(node.Labels, synced)
	node.Annotations[clusterv1.LabelsFromMachineAnnotation] = strings.Join(slices.Sorted(maps.Keys(synced)), ",")
}

func syncsToNode(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	under := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	return domain == clusterv1.NodeRoleLabelPrefix || under(clusterv1.NodeRestrictionLabelDomain) || under(clusterv1.ManagedNodeLabelDomain)
}

func (c *Controller) interruptible(ctx context.Context, s *scope) (bool, error) {
	obj, err := c.object(ctx, s, &s.machine.Spec.InfrastructureRef)
	if err != nil || obj == nil {
		return false, err
	}
	return contract.InfrastructureMachineOf(contract.Object{Unstructured: obj}).Interruptible()
}
