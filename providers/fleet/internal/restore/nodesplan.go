package restore

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// controlPlaneRole is the label that kubeadm sets on Nodes of control planes.
const controlPlaneRole = "node-role.kubernetes.io/control-plane"

// nodesPlan is what happens to Nodes that a backup has.
type nodesPlan struct {
	// obsolete Nodes belonged to Machines that no longer exist.
	obsolete []*corev1.Node
	// unknown are the names of Nodes that never belonged to a Machine.
	unknown []string
	// newer are the names of Machines whose Node is not in the backup: they are newer than it.
	newer []string
}

// planNodes decides. A Node whose Machine exists is never deleted.
func planNodes(nodes []corev1.Node, has owners) nodesPlan {
	var plan nodesPlan
	present := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		present[n.Name] = true
		switch {
		case has.owns(n):
		case has.owned(n):
			plan.obsolete = append(plan.obsolete, n)
		default:
			plan.unknown = append(plan.unknown, n.Name)
		}
	}
	for i := range has.machines {
		m := &has.machines[i]
		if m.DeletionTimestamp.IsZero() && m.Status.NodeRef.IsDefined() && !present[m.Status.NodeRef.Name] {
			plan.newer = append(plan.newer, m.Name)
		}
	}
	return plan
}

// owns reports whether a Node belongs to a Machine or a pool that exists.
func (o *owners) owns(n *corev1.Node) bool {
	id := n.Spec.ProviderID
	annotated := n.Annotations[clusterv1.MachineAnnotation]
	if cluster := n.Annotations[clusterv1.ClusterNameAnnotation]; cluster != "" && cluster != o.cluster.Name {
		annotated = "" // The name of a Machine of another Cluster.
	}
	return slices.ContainsFunc(o.machines, func(m clusterv1.Machine) bool {
		return m.Status.NodeRef.Name == n.Name || id != "" && m.Spec.ProviderID == id || m.Name == annotated
	}) || slices.ContainsFunc(o.pools, func(p clusterv1.MachinePool) bool {
		return id != "" && slices.Contains(p.Spec.ProviderIDList, id) ||
			slices.ContainsFunc(p.Status.NodeRefs, func(ref corev1.ObjectReference) bool { return ref.Name == n.Name })
	})
}

// owned reports whether a Node belonged to a Machine: to one that was fenced, to another one of a control plane, or to one that has left
// its name on it.
func (o *owners) owned(n *corev1.Node) bool {
	_, controlPlane := n.Labels[controlPlaneRole]
	return controlPlane || n.Annotations[clusterv1.MachineAnnotation] != "" ||
		slices.ContainsFunc(o.fenced, func(f fleetv1.FencedMachine) bool { return f.NodeName == n.Name })
}

// notes says what users should look at.
func (p *nodesPlan) notes() []string {
	var all []string
	if len(p.newer) > 0 {
		all = append(all, "these Machines are newer than the backup, so that the cluster does not know their Nodes: "+strings.Join(p.newer, ", ")+
			". Restart the kubelet on each, or delete the Machines, so that they are replaced")
	}
	if len(p.unknown) > 0 {
		all = append(all, "these Nodes have no Machine, and never had one: "+strings.Join(p.unknown, ", ")+
			". Delete those whose hosts no longer exist")
	}
	return all
}
