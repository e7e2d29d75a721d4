package journey

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// limits are the annotations of a node group.
func limits(least, most string) map[string]string {
	return map[string]string{clusterv1.AutoscalerMinSizeAnnotation: least, clusterv1.AutoscalerMaxSizeAnnotation: most}
}

// pend creates Pods that request a CPU each and are not on any Node, as a scheduler leaves them that finds no room.
func (c *Subject) pend(names ...string) {
	c.t.Helper()
	for _, name := range names {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "busy", Image: "busy", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}}}
		if err := c.Workload().client.Create(c.t.Context(), pod); err != nil {
			c.t.Fatal(err)
		}
	}
}

// pending returns the CPUs that Pods without a Node request.
func (c *Subject) pending() resource.Quantity {
	c.t.Helper()
	pods := &corev1.PodList{}
	if err := c.Workload().client.List(c.t.Context(), pods, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		c.t.Fatal(err)
	}
	var sum resource.Quantity
	for _, p := range pods.Items {
		if p.Spec.NodeName == "" {
			sum.Add(*p.Spec.Containers[0].Resources.Requests.Cpu())
		}
	}
	return sum
}

// waitForGroup waits until the autoscaler has a node group with this number of replicas and instances.
func (c *Subject) waitForGroup(a *Autoscaler, name string, replicas int64, instances int) *nodeGroup {
	c.t.Helper()
	var found *nodeGroup
	c.Eventually("the autoscaler has the node group", func(*Snapshot) error {
		g, err := a.group(name)
		if err != nil {
			return err
		}
		spec, _ := g.Object["spec"].(map[string]any)
		if have := len(g.instances()); spec["replicas"] != replicas || have != instances {
			return fmt.Errorf("%s has %v replicas and %d instances, want %d and %d", name, spec["replicas"], have, replicas, instances)
		}
		found = g
		return nil
	})
	return found
}

// scaleUp adds as many Nodes as the pending Pods need according to the template of the group, and as its limit allows.
func (c *Subject) scaleUp(g *nodeGroup) {
	c.t.Helper()
	node, err := g.template(c.t.Context())
	if err != nil {
		c.t.Fatalf("simulating a Node of %s: %v", g.GetName(), err)
	}
	cpu, pending := node.Status.Capacity.Cpu().MilliValue(), c.pending()
	if cpu == 0 {
		c.t.Fatalf("a Node of %s has no CPU: %v", g.GetName(), node.Status.Capacity)
	}
	needed := (pending.MilliValue() + cpu - 1) / cpu
	if err := g.resize(c.t.Context(), func(n int32) int32 { return min(n+int32(needed), int32(g.max)) }); err != nil {
		c.t.Fatalf("scaling up %s: %v", g.GetName(), err)
	}
}

// scaleDown removes the Node of a Machine, and waits until exactly this Machine is deleted.
func (c *Subject) scaleDown(g *nodeGroup, machine clusterv1.Machine, left int) {
	c.t.Helper()
	nodes, err := c.Workload().Nodes(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == machine.Status.NodeRef.Name })
	before := identities(c.Snapshot().Workers())
	chosen, err := g.deleteNode(c.t.Context(), &nodes[i])
	if err != nil || chosen != machine.Name {
		c.t.Fatalf("deleting Node %s: Machine %s, %v", nodes[i].Name, chosen, err)
	}
	delete(before, chosen)
	c.Eventually("the Node's Machine is deleted", func(p *Snapshot) error {
		if err := running(p.Workers(), left); err != nil {
			return err
		}
		if diff := cmp.Diff(before, identities(p.Workers())); diff != "" {
			return fmt.Errorf("Machines (-want +got):\n%s", diff)
		}
		return nil
	}, c.NodesMatch)
}

// TestAutoscalerOfATopology scales a MachineDeployment of a topology from zero, and down again, with the requests of the cluster
// autoscaler. The topology controller leaves the number of replicas to it.
func TestAutoscalerOfATopology(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	a := w.Autoscaler()
	cluster := NewCluster("c", w.Class(w.Tools.ProjectTemplate())).Build()
	md := &cluster.Spec.Topology.Workers.MachineDeployments[0]
	md.Replicas, md.Metadata.Annotations = nil, limits("0", "3")
	c := w.Subject(cluster)
	c.Eventually("the Cluster becomes ready without workers", Ready, ControlPlanes(1), Workers(0), c.WorkloadMatches)
	name := c.Snapshot().Deployments.Items[0].Name
	g := c.waitForGroup(a, name, 0, 0)
	c.pend("one", "two", "three", "four", "five")
	c.scaleUp(g)
	c.Eventually("five pending Pods need three Nodes", Ready, Workers(3), c.WorkloadMatches)

	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.Workers.MachineDeployments[0].Metadata.Labels = map[string]string{"changed": "yes"}
	})
	c.Eventually("the topology controller changes the MachineDeployment, except its replicas", Ready, Workers(3), func(p *Snapshot) error {
		if d := p.Deployments.Items[0]; d.Labels["changed"] != "yes" || *d.Spec.Replicas != 3 {
			return fmt.Errorf("labels %v, %d replicas", d.Labels, *d.Spec.Replicas)
		}
		return nil
	})
	before := c.Snapshot()
	c.Change(SetVersion(newer))
	c.Eventually("an upgrade keeps the number of replicas", Ready, Workers(3), Version(newer), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches)

	for left := 2; left >= 0; left-- {
		// Not the one that would be chosen without annotation, or not always.
		workers := c.Snapshot().Workers()
		c.scaleDown(c.waitForGroup(a, name, int64(left+1), left+1), workers[len(workers)/2], left)
	}
	c.Eventually("the Cluster has no workers", Ready, Workers(0), c.WorkloadMatches)
	if err := c.waitForGroup(a, name, 0, 0).resize(t.Context(), func(int32) int32 { return 4 }); err == nil {
		t.Error("the autoscaler must not exceed the limit")
	}
	c.Gone()
}

// TestAutoscalerOfAMachineSet scales a MachineSet of its own, and takes the capacity, labels and taints of Nodes from annotations.
func TestAutoscalerOfAMachineSet(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Plain(Plain{ControlPlanes: 1, Workers: 0}.String())
	set := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set", Annotations: limits("0", "2")},
		Spec:       clusterv1.MachineSetSpec{ClusterName: "c"},
	}
	deployment := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "workers"}}
	w.read(deployment)
	set.Spec.Template.Spec = deployment.Spec.Template.Spec
	for name, value := range map[string]string{"cpu": "1", "memory": "8Gi", "maxPods": "20", "labels": "disk=ssd", "taints": "gpu=yes:NoSchedule"} {
		set.Annotations[capacityPrefix+name] = value
	}
	w.Applied(set)
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), c.WorkloadMatches)

	a := w.Autoscaler()
	g := c.waitForGroup(a, "set", 0, 0)
	node, err := g.template(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"disk": "ssd"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("8Gi"),
			corev1.ResourcePods: resource.MustParse("20"), corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
		}},
	}
	if diff := cmp.Diff(want, node); diff != "" {
		t.Errorf("the simulated Node (-want +got):\n%s", diff)
	}
	c.pend("one", "two")
	c.scaleUp(g)
	c.Eventually("two Nodes of one CPU are added", func(p *Snapshot) error { return running(p.Workers(), 2) }, c.NodesMatch)
	for left := 1; left >= 0; left-- {
		c.scaleDown(c.waitForGroup(a, "set", int64(left+1), left+1), c.Snapshot().Workers()[left], left)
	}
	c.Delete()
}

// TestAutoscalerOfAMachinePool scales a MachinePool of a topology, and lets the infrastructure take over the number of replicas.
func TestAutoscalerOfAMachinePool(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	a := w.Autoscaler()
	cluster := NewCluster("c", w.Class(w.Tools.ProjectTemplate())).Build()
	pool := poolTopology("mp-0", 0, limits("1", "3"))
	pool.Replicas = nil
	for name, value := range map[string]string{"cpu": "1", "memory": "4Gi"} {
		pool.Metadata.Annotations[capacityPrefix+name] = value // An infrastructure pool reports no capacity.
	}
	setPools(pool)(cluster)
	c := w.Subject(cluster)
	c.Eventually("the pool starts with one Machine", Ready, ControlPlanes(1), Pools(1), c.WorkloadMatches)
	name := c.Snapshot().Pools.Items[0].Name
	c.pend("one", "two")
	c.scaleUp(c.waitForGroup(a, name, 1, 1))
	c.Eventually("two pending Pods need two more Nodes", Ready, Pools(3), c.WorkloadMatches)
	before := c.Snapshot()
	c.Change(SetVersion(newer))
	c.Eventually("an upgrade keeps the number of replicas", Ready, Pools(3), Version(newer), NewMachines((*Snapshot).Pooled, before), c.WorkloadMatches)
	for left := 2; left >= 1; left-- {
		workers := c.Snapshot().Pooled()
		c.scaleDown(c.waitForGroup(a, name, int64(left+1), left+1), workers[len(workers)/2], left)
	}
	if err := c.waitForGroup(a, name, 1, 1).resize(t.Context(), func(int32) int32 { return 0 }); err == nil {
		t.Error("the autoscaler must not go below the limit")
	}

	infrastructure := object(poolInfrastructure, "InMemoryMachinePool", c.Namespace, c.Snapshot().Pools.Items[0].Spec.Template.Spec.InfrastructureRef.Name)
	c.update(infrastructure, func() {
		if err := unstructured.SetNestedField(infrastructure.Object, int64(2), "spec", "replicas"); err != nil {
			t.Error(err)
		}
	})
	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.Workers.MachinePools[0].Metadata.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "the-cloud"}
	})
	c.Eventually("the infrastructure decides on the number", Ready, Pools(2), c.WorkloadMatches, func(p *Snapshot) error {
		if have := p.Pools.Items[0].Spec.Replicas; have == nil || *have != 2 {
			return fmt.Errorf("spec.replicas of the MachinePool is %v", value(have))
		}
		return nil
	})
	c.Eventually("the pool is no longer a node group", func(*Snapshot) error {
		if _, err := a.group(name); err == nil {
			return fmt.Errorf("the autoscaler still has node group %s", name)
		}
		return nil
	})
	c.Gone()
}
