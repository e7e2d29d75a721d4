package journey

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Snapshot has the objects of one Cluster in the management cluster. It must not be modified.
type Snapshot struct {
	// Cluster has no name if it does not exist.
	Cluster       *clusterv1.Cluster
	ControlPlanes controlplanev1.KubeadmControlPlaneList
	Deployments   clusterv1.MachineDeploymentList
	Sets          clusterv1.MachineSetList
	Pools         clusterv1.MachinePoolList
	Machines      clusterv1.MachineList
}

func (p *Snapshot) lists() []client.ObjectList {
	return []client.ObjectList{&p.ControlPlanes, &p.Deployments, &p.Sets, &p.Pools, &p.Machines}
}

// add adds an object while a Snapshot is built.
func (p *Snapshot) add(object client.Object) {
	switch o := object.(type) {
	case *clusterv1.Cluster:
		p.Cluster = o
	case *controlplanev1.KubeadmControlPlane:
		p.ControlPlanes.Items = append(p.ControlPlanes.Items, *o)
	case *clusterv1.MachineDeployment:
		p.Deployments.Items = append(p.Deployments.Items, *o)
	case *clusterv1.MachineSet:
		p.Sets.Items = append(p.Sets.Items, *o)
	case *clusterv1.MachinePool:
		p.Pools.Items = append(p.Pools.Items, *o)
	case *clusterv1.Machine:
		p.Machines.Items = append(p.Machines.Items, *o)
	}
}

// ControlPlane returns the control plane Machines, sorted by name, including those that are being deleted.
func (p *Snapshot) ControlPlane() []clusterv1.Machine { return p.machines(true) }

// Workers returns the other Machines, sorted by name, including those that are being deleted.
func (p *Snapshot) Workers() []clusterv1.Machine { return p.machines(false) }

func (p *Snapshot) machines(controlPlane bool) []clusterv1.Machine {
	var found []clusterv1.Machine
	for _, m := range p.Machines.Items {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok == controlPlane {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b clusterv1.Machine) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// available returns the number of Machines with a healthy Node that are not being deleted.
func available(machines []clusterv1.Machine) int {
	return count(machines, func(m *clusterv1.Machine) bool {
		return m.DeletionTimestamp.IsZero() && m.Status.NodeRef != nil && ConditionIsTrue(m, clusterv1.MachineNodeHealthyCondition)
	})
}

func count(machines []clusterv1.Machine, which func(*clusterv1.Machine) bool) int {
	n := 0
	for i := range machines {
		if which(&machines[i]) {
			n++
		}
	}
	return n
}

func ofVersion(v string) func(*clusterv1.Machine) bool {
	return func(m *clusterv1.Machine) bool { return m.Spec.Version != nil && *m.Spec.Version == v }
}

// identities maps the names of Machines to their UIDs.
func identities(machines []clusterv1.Machine) map[string]string {
	found := map[string]string{}
	for _, m := range machines {
		found[m.Name] = string(m.UID)
	}
	return found
}

// String describes the Snapshot, for diagnosing failed tests.
func (p *Snapshot) String() string {
	b := &strings.Builder{}
	c := p.Cluster
	fmt.Fprintf(b, "Cluster %s: phase %s, generation %d of %d observed%s\n",
		c.Name, c.Status.Phase, c.Status.ObservedGeneration, c.Generation, falseConditions(c.Status.Conditions))
	for _, k := range p.ControlPlanes.Items {
		s := k.Status
		fmt.Fprintf(b, "KubeadmControlPlane %s: %d of %v replicas, %d ready, %d updated, version %v of %s, initialized %t%s\n",
			k.Name, s.Replicas, value(k.Spec.Replicas), s.ReadyReplicas, s.UpdatedReplicas, value(s.Version), k.Spec.Version,
			s.Initialized, falseConditions(s.Conditions))
	}
	for _, d := range p.Deployments.Items {
		s := d.Status
		fmt.Fprintf(b, "MachineDeployment %s: phase %s, %d of %v replicas, %d ready, %d updated, %d available, version %v%s\n",
			d.Name, s.Phase, s.Replicas, value(d.Spec.Replicas), s.ReadyReplicas, s.UpdatedReplicas, s.AvailableReplicas,
			value(d.Spec.Template.Spec.Version), falseConditions(s.Conditions))
	}
	for _, m := range p.Sets.Items {
		fmt.Fprintf(b, "MachineSet %s: %d of %v replicas, %d ready, version %v%s\n",
			m.Name, m.Status.Replicas, value(m.Spec.Replicas), m.Status.ReadyReplicas, value(m.Spec.Template.Spec.Version),
			falseConditions(m.Status.Conditions))
	}
	for _, m := range p.Pools.Items {
		s := m.Status
		fmt.Fprintf(b, "MachinePool %s: phase %s, %d of %v replicas, %d ready, %d available, %d Nodes, version %v%s\n",
			m.Name, s.Phase, s.Replicas, value(m.Spec.Replicas), s.ReadyReplicas, s.AvailableReplicas, len(s.NodeRefs),
			value(m.Spec.Template.Spec.Version), falseConditions(s.Conditions))
	}
	for _, m := range append(p.ControlPlane(), p.Workers()...) {
		node := "none"
		if m.Status.NodeRef != nil {
			node = m.Status.NodeRef.Name
		}
		fmt.Fprintf(b, "Machine %s: phase %s, version %v, Node %s, finalizers %v%s\n",
			m.Name, m.Status.Phase, value(m.Spec.Version), node, m.Finalizers, falseConditions(m.Status.Conditions))
	}
	return b.String()
}

// falseConditions lists the conditions that are not True.
func falseConditions(conditions clusterv1.Conditions) string {
	var b strings.Builder
	for _, c := range conditions {
		if c.Status != corev1.ConditionTrue {
			fmt.Fprintf(&b, "\n    %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return b.String()
}

func value[T any](p *T) any {
	if p == nil {
		return "unset"
	}
	return *p
}
