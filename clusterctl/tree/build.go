package tree

import (
	"fmt"

	"github.com/gobuffalo/flect"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Build returns the tree of a Cluster. A Cluster that is not among the objects, because it was deleted before the last of
// them, is still the root of the tree.
func Build(cluster types.NamespacedName, objects *Objects, o Options) *Node {
	b := &builder{Options: o, objects: objects, name: cluster, cluster: objects.Cluster(cluster)}
	root := &Node{Kind: ClusterKind.Kind, Name: cluster.Name}
	if b.cluster != nil {
		root = b.objectNode(b.cluster, "")
		b.countMachines(root)
	}
	b.machines = ownedBy(objects.Of(MachineKind, cluster))
	if u := objects.Resolve(b.cluster, clusterInfrastructure...); u != nil {
		root.Children = append(root.Children, b.objectNode(u, "ClusterInfrastructure"))
	}
	if o.ResourceSets {
		root.Children = append(root.Children, b.resourceSets()...)
	}
	if o.HealthChecks {
		root.Children = append(root.Children, b.healthChecks()...)
	}
	root.Children = append(root.Children, b.controlPlane()...)
	root.Children = append(root.Children, b.workers()...)
	root.sort()
	return root
}

type builder struct {
	Options
	objects *Objects
	name    types.NamespacedName
	cluster *unstructured.Unstructured // may be nil
	// machines are the Machines not shown yet, by controller.
	machines map[types.UID][]*unstructured.Unstructured
}

// ownedBy groups objects by the UID of their controller, which is empty for those without one.
func ownedBy(list []*unstructured.Unstructured) map[types.UID][]*unstructured.Unstructured {
	owned := map[types.UID][]*unstructured.Unstructured{}
	for _, u := range list {
		owned[controllerOf(u)] = append(owned[controllerOf(u)], u)
	}
	return owned
}

func controllerOf(u *unstructured.Unstructured) types.UID {
	for _, owner := range u.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			return owner.UID
		}
	}
	return ""
}

func (b *builder) resourceSets() []*Node {
	binding := b.objects.Get(bindingKind.GroupKind(), b.name)
	if binding == nil {
		return nil
	}
	field, _, _ := unstructured.NestedFieldNoCopy(binding.Object, "spec", "bindings")
	items, _ := field.([]any)
	group := virtual("ClusterResourceSets")
	for _, item := range items {
		entry, _ := item.(map[string]any)
		if name, _ := entry["clusterResourceSetName"].(string); name != "" {
			group.Children = append(group.Children, &Node{Kind: "ClusterResourceSet", Name: name, Ready: resourcesApplied(entry)})
		}
	}
	if len(group.Children) == 0 {
		return nil
	}
	return []*Node{group}
}

// resourcesApplied summarizes what a binding says about a ClusterResourceSet.
func resourcesApplied(entry map[string]any) *Condition {
	resources, _ := entry["resources"].([]any)
	applied, first := 0, ""
	for _, item := range resources {
		resource, _ := item.(map[string]any)
		if done, _ := resource["applied"].(bool); done {
			applied++
		} else if first == "" {
			first = fmt.Sprintf(": not %v %v", resource["kind"], resource["name"])
		}
	}
	c := &Condition{Status: "True", Message: fmt.Sprintf("%d of %d resources are applied%s", applied, len(resources), first)}
	if first != "" {
		c.Status, c.Severity, c.Reason = "False", "Warning", "ResourcesNotApplied"
	}
	return c
}

func (b *builder) controlPlane() []*Node {
	var machines []*unstructured.Unstructured
	for owner, list := range b.machines {
		var workers []*unstructured.Unstructured
		for _, m := range list {
			if _, ok := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; ok {
				machines = append(machines, m)
			} else {
				workers = append(workers, m)
			}
		}
		b.machines[owner] = workers
	}
	u := b.objects.Resolve(b.cluster, clusterControlPlane...)
	if u == nil && len(machines) == 0 {
		return nil
	}
	node := virtual("ControlPlane")
	if u != nil {
		node = b.objectNode(u, "ControlPlane")
		node.Children = b.templates(u, nil, planeInfrastructure)
	}
	b.addMachines(node, machines)
	return []*Node{node}
}

func (b *builder) workers() []*Node {
	node := virtual("Workers")
	sets := ownedBy(b.objects.Of(MachineSetKind, b.name))
	for _, d := range b.objects.Of(MachineDeploymentKind, b.name) {
		node.Children = append(node.Children, b.machineDeployment(d, sets[d.GetUID()]))
	}
	for _, p := range b.objects.Of(MachinePoolKind, b.name) {
		node.Children = append(node.Children, b.machinePool(p))
	}
	var unclaimed []*unstructured.Unstructured
	for _, machines := range b.machines {
		unclaimed = append(unclaimed, machines...)
	}
	if len(unclaimed) > 0 {
		other := virtual("Other")
		for _, m := range unclaimed {
			other.Children = append(other.Children, b.machine(m))
		}
		node.Children = append(node.Children, other)
	}
	if len(node.Children) == 0 {
		return nil
	}
	return []*Node{node}
}

func (b *builder) machineDeployment(d *unstructured.Unstructured, sets []*unstructured.Unstructured) *Node {
	node := b.objectNode(d, "")
	node.Children = b.templates(d, templateBootstrap, templateInfrastructure)
	var machines []*unstructured.Unstructured
	for _, set := range sets {
		if !b.MachineSets {
			machines = append(machines, b.claim(set)...)
			continue
		}
		child := b.objectNode(set, "")
		b.addMachines(child, b.claim(set))
		node.Children = append(node.Children, child)
	}
	b.addMachines(node, machines)
	return node
}

func (b *builder) machinePool(p *unstructured.Unstructured) *Node {
	node := b.objectNode(p, "")
	b.addUnlessEcho(node, p, "BootstrapConfig", templateBootstrap)
	b.addUnlessEcho(node, p, "MachinePoolInfrastructure", templateInfrastructure)
	b.addMachines(node, b.claim(p))
	return node
}

// claim returns the Machines that an object controls, so that they are only shown below it.
func (b *builder) claim(owner *unstructured.Unstructured) []*unstructured.Unstructured {
	machines := b.machines[owner.GetUID()]
	delete(b.machines, owner.GetUID())
	return machines
}

func (b *builder) addMachines(parent *Node, machines []*unstructured.Unstructured) {
	var nodes []*Node
	for _, m := range machines {
		nodes = append(nodes, b.machine(m))
	}
	if b.Grouping {
		nodes = grouped(nodes, flect.Pluralize)
	}
	parent.Children = append(parent.Children, nodes...)
}

func (b *builder) machine(m *unstructured.Unstructured) *Node {
	node := b.objectNode(m, "")
	b.addUnlessEcho(node, m, "MachineInfrastructure", machineInfrastructure)
	b.addUnlessEcho(node, m, "BootstrapConfig", machineBootstrap)
	return node
}

// addUnlessEcho adds a referenced object, unless its state is its parent's.
func (b *builder) addUnlessEcho(parent *Node, from *unstructured.Unstructured, metaName string, path []string) {
	u := b.objects.Resolve(from, path...)
	if u == nil {
		return
	}
	node := b.objectNode(u, metaName)
	own, parents := node.Ready, parent.Ready
	if b.Reports {
		own, parents = node.Report.State, parent.Report.State
	}
	echo := sameState(own, parents) || own != nil && own.Status == "True"
	if b.Echo || node.alone || !echo {
		parent.Children = append(parent.Children, node)
	}
}

// templates returns the node of the templates of Machines; nil paths are skipped.
func (b *builder) templates(from *unstructured.Unstructured, bootstrap, infrastructure []string) []*Node {
	if !b.Templates {
		return nil
	}
	node := virtual("Templates")
	node.first = true
	for _, t := range []struct {
		metaName string
		path     []string
	}{{"BootstrapConfigTemplate", bootstrap}, {"MachineInfrastructureTemplate", infrastructure}} {
		if t.path == nil {
			continue
		}
		if u := b.objects.Resolve(from, t.path...); u != nil {
			node.Children = append(node.Children, b.objectNode(u, t.metaName))
		}
	}
	if len(node.Children) == 0 {
		return nil
	}
	return []*Node{node}
}
