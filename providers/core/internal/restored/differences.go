package restored

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// namesShown is how many names of a sort a message has.
	namesShown = 5
	// nameShown is how many characters of a Node's name a message has: the workload cluster is not trusted.
	nameShown = 253
)

// difference is what differs between a workload cluster and the restored objects.
type difference struct {
	// nodes are the names of Nodes that have no Machine, and had one or are newer than the backup.
	nodes []string
	// machines are the names of Machines whose Node no longer exists, or has become that of another machine.
	machines []string
}

func (d difference) none() bool { return len(d.nodes) == 0 && len(d.machines) == 0 }

// String describes the differences in one line.
func (d difference) String() string {
	var parts []string
	if len(d.nodes) > 0 {
		parts = append(parts, "Nodes without a Machine: "+listed(d.nodes))
	}
	if len(d.machines) > 0 {
		parts = append(parts, "Machines without their Node: "+listed(d.machines))
	}
	return strings.Join(parts, "; ")
}

func listed(names []string) string {
	slices.Sort(names)
	if more := len(names) - namesShown; more > 0 {
		return fmt.Sprintf("%s, ... (%d more)", strings.Join(names[:namesShown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// differences compares Nodes with the Machines and MachinePools of a backup. Nodes that had no Machine when it was made do not count: they
// are not managed.
func differences(backup time.Time, nodes []corev1.Node, machines []clusterv1.Machine, pools []clusterv1.MachinePool) difference {
	k := known{ids: map[string]bool{}, refs: map[string]string{}, machines: map[string]bool{}, pools: map[string]bool{}}
	k.add(machines, pools)
	var d difference
	present := map[string]string{}
	for i := range nodes {
		node := &nodes[i]
		present[node.Name] = node.Spec.ProviderID
		if _, had := node.Annotations[clusterv1.MachineAnnotation]; !k.has(node) && (had || node.CreationTimestamp.After(backup)) {
			d.nodes = append(d.nodes, node.Name[:min(len(node.Name), nameShown)])
		}
	}
	for i := range machines {
		m := &machines[i]
		if !m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero() {
			continue
		}
		id, exists := present[m.Status.NodeRef.Name]
		if !exists || conflict(id, m.Spec.ProviderID) {
			d.machines = append(d.machines, m.Name)
		}
	}
	return d
}

// conflict reports whether two provider IDs are of different machines.
func conflict(a, b string) bool { return a != "" && b != "" && a != b }

// known is what identifies the Nodes of the Machines and MachinePools of a backup.
type known struct {
	ids      map[string]bool   // provider IDs
	refs     map[string]string // provider IDs by names of Nodes
	machines map[string]bool   // names
	pools    map[string]bool   // names
}

func (k known) add(machines []clusterv1.Machine, pools []clusterv1.MachinePool) {
	for i := range machines {
		m := &machines[i]
		k.machines[m.Name] = m.Spec.ProviderID == ""
		k.ids[m.Spec.ProviderID] = true
		if m.Status.NodeRef.IsDefined() {
			k.refs[m.Status.NodeRef.Name] = m.Spec.ProviderID
		}
	}
	for i := range pools {
		pool := &pools[i]
		k.pools[pool.Name] = true
		for _, id := range pool.Spec.ProviderIDList {
			k.ids[id] = true
		}
		for _, ref := range pool.Status.NodeRefs {
			k.refs[ref.Name] = ""
		}
	}
	delete(k.ids, "")
}

// has reports whether a Node belongs to a Machine or a MachinePool: by its provider ID, by the name in their status, or by its
// annotations, if the Machine has no provider ID yet. Pools whose machines are not Machines report new ones by themselves.
func (k known) has(node *corev1.Node) bool {
	if k.ids[node.Spec.ProviderID] {
		return true
	}
	if id, found := k.refs[node.Name]; found && !conflict(id, node.Spec.ProviderID) {
		return true
	}
	machine, named := node.Annotations[clusterv1.MachineAnnotation]
	if named {
		return k.machines[machine]
	}
	return k.machines[node.Name] ||
		node.Annotations[clusterv1.OwnerKindAnnotation] == clusterv1.MachinePoolKind && k.pools[node.Annotations[clusterv1.OwnerNameAnnotation]]
}
