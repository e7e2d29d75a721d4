package journey

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	ownClass       = "in-memory"
	otherClass     = "in-memory-2"
	otherBootstrap = "other"
)

// up returns a Cluster of the project's class that is up, with one control plane Machine and two workers. In its
// namespace are another bootstrap template for workers, and a class that differs in using that one.
func up(t *testing.T, name string) *Subject {
	t.Helper()
	w := shared.World(t)
	w.Class(w.Tools.ProjectTemplate())
	w.others()
	c := w.Subject(NewCluster(name, ownClass).Workers(2).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(2), c.Agrees)
	return c
}

// Labels and annotations reach everything that exists, down to the Nodes, and replace nothing.
func TestLabelsChangeInPlace(t *testing.T) {
	t.Parallel()
	c := up(t, "labels")
	before := c.Picture()
	still := c.Always("a label replaces no Machine", SameMachines((*Picture).ControlPlane, before), SameMachines((*Picture).Workers, before))
	const plain, forNodes = "team", "node.cluster.x-k8s.io/flavor"
	c.Change(func(cluster *clusterv1.Cluster) {
		cluster.Spec.Topology.ControlPlane.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{plain: "blue", forNodes: "big"}}
		cluster.Spec.Topology.Workers.MachineDeployments[0].Metadata = clusterv1.ObjectMeta{
			Labels: map[string]string{plain: "red", forNodes: "small"}, Annotations: map[string]string{"note": "hot"},
		}
	})
	c.Eventually("Machines and their Nodes get the labels", Ready, func(p *Picture) error {
		want, have := map[string]string{}, map[string]string{}
		for _, m := range p.ControlPlane() {
			want[m.Name] = "blue  big"
		}
		for _, m := range p.Workers() {
			want[m.Name] = "red hot small"
		}
		nodes, err := c.Workload().Nodes(c.t.Context())
		if err != nil {
			return err
		}
		for i, m := range p.Machines.Items {
			have[m.Name] = m.Labels[plain] + " " + m.Annotations["note"]
			for _, n := range nodes {
				if n.Name == p.Machines.Items[i].Status.NodeRef.Name {
					have[m.Name] += " " + n.Labels[forNodes]
				}
			}
		}
		if diff := cmp.Diff(want, have); diff != "" {
			return fmt.Errorf("label, annotation and label of the Node (-want +got):\n%s", diff)
		}
		return nil
	})
	still()
	c.Gone()
}

// A variable that patches machine templates replaces all Machines, by the strategies of control plane and workers.
func TestVariableRollsOut(t *testing.T) {
	t.Parallel()
	c := up(t, "variable")
	before := c.Picture()
	still := c.Always("a rollout keeps the promises", AvailableControlPlane(1), AvailableWorkers(2), AtMost(2, 3))
	consistent := c.EtcdIsConsistent(1, 2)
	c.Change(setVariable("startupDuration", "250ms"))
	c.Eventually("every Machine is replaced", Ready, ControlPlanes(1), Workers(2),
		NewMachines((*Picture).ControlPlane, before), NewMachines((*Picture).Workers, before), c.Agrees)
	still()
	consistent()
	for _, m := range c.Picture().Machines.Items {
		machine := object(m.Spec.InfrastructureRef.APIVersion, m.Spec.InfrastructureRef.Kind, c.Namespace, m.Spec.InfrastructureRef.Name)
		c.read(machine)
		if d, _, _ := unstructured.NestedString(machine.Object, "spec", "behaviour", "vm", "provisioning", "startupDuration"); d != "250ms" {
			t.Errorf("%s %s was made with startupDuration %q", machine.GetKind(), machine.GetName(), d)
		}
	}
	c.Gone()
}

// read gets an object as it is now.
func (w *World) read(o client.Object) {
	w.t.Helper()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatalf("reading %s %s: %v", kindOf(o), o.GetName(), err)
	}
}

// others applies the other bootstrap template and the other class.
func (w *World) others() {
	w.t.Helper()
	template := object("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", w.Namespace, "in-memory-default-worker")
	w.read(template)
	copied := object(template.GetAPIVersion(), template.GetKind(), w.Namespace, otherBootstrap)
	copied.Object["spec"] = template.Object["spec"]
	if err := unstructured.SetNestedStringSlice(copied.Object, []string{"echo hello"}, "spec", "template", "spec", "preKubeadmCommands"); err != nil {
		w.t.Fatal(err)
	}
	class := object("cluster.x-k8s.io/v1beta1", "ClusterClass", w.Namespace, ownClass)
	w.read(class)
	other := object(class.GetAPIVersion(), class.GetKind(), w.Namespace, otherClass)
	other.Object["spec"] = class.Object["spec"]
	if err := bootstrapOfWorkers(other, otherBootstrap); err != nil {
		w.t.Fatal(err)
	}
	w.Applied(copied, other)
}

// bootstrapOfWorkers makes a ClusterClass take another bootstrap template for its workers.
func bootstrapOfWorkers(class *unstructured.Unstructured, name string) error {
	deployments, _, err := unstructured.NestedSlice(class.Object, "spec", "workers", "machineDeployments")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(deployments[0].(map[string]any), name, "template", "bootstrap", "ref", "name"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(class.Object, deployments, "spec", "workers", "machineDeployments")
}

// A class that takes another template replaces what was made of the old one, and nothing else.
func TestClassTakesOtherTemplate(t *testing.T) {
	t.Parallel()
	c := up(t, "template")
	before := c.Picture()
	still := c.Always("only workers are replaced", SameMachines((*Picture).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
	class := object("cluster.x-k8s.io/v1beta1", "ClusterClass", c.Namespace, ownClass)
	c.update(class, func() error { return bootstrapOfWorkers(class, otherBootstrap) })
	c.Eventually("the workers are replaced", Ready, Workers(2), NewMachines((*Picture).Workers, before), c.Agrees)
	still()
	c.Gone()
}

// update changes an object as an editor does.
func (w *World) update(o client.Object, change func() error) {
	w.t.Helper()
	w.read(o)
	if err := change(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Client.Update(w.t.Context(), o); err != nil {
		w.t.Fatalf("changing %s %s: %v", kindOf(o), o.GetName(), err)
	}
}

// A Cluster that moves to another class keeps what both classes make alike.
func TestRebases(t *testing.T) {
	t.Parallel()
	c := up(t, "rebase")
	before := c.Picture()
	still := c.Always("only workers are replaced", SameMachines((*Picture).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
	c.Change(setClass(otherClass))
	c.Eventually("the workers are those of the new class", Ready, ControlPlanes(1), Workers(2), NewMachines((*Picture).Workers, before), c.Agrees)
	still()
	if err := c.Client.Delete(t.Context(), object("cluster.x-k8s.io/v1beta1", "ClusterClass", c.Namespace, ownClass)); err != nil {
		t.Errorf("the class that nobody uses any more can be deleted: %v", err)
	}
	// With the class goes the template that only it used.
	gone := []string{"clusterclasses/" + ownClass, "kubeadmconfigtemplates/in-memory-default-worker"}
	c.before = slices.DeleteFunc(c.before, func(entry string) bool { return slices.Contains(gone, entry) })
	c.Gone()
}

// Nobody touches what belongs to a paused Cluster; afterwards it catches up.
func TestPauses(t *testing.T) {
	t.Parallel()
	c := up(t, "paused")
	other := c.World.Subject(NewCluster("other", ownClass).Build())
	other.Eventually("it comes up", Ready, ControlPlanes(1), other.Agrees)

	c.Change(setPaused(true))
	c.Change(setWorkers(3))
	quiet := c.versions()
	// What happens to another Cluster in the meantime would have happened to this one too.
	other.Change(setWorkers(1))
	other.Eventually("the other Cluster grows", Ready, Workers(1), other.Agrees)
	other.Change(setWorkers(0))
	other.Eventually("the other Cluster shrinks", Ready, Workers(0), other.Agrees)
	if diff := cmp.Diff(quiet, c.versions()); diff != "" {
		t.Errorf("a paused Cluster was written to (-before +after):\n%s", diff)
	}

	c.Change(setPaused(false))
	c.Eventually("it catches up", Ready, ControlPlanes(1), Workers(3), c.Agrees)
	other.Delete()
	c.Gone()
}

// versions maps everything that belongs to the Cluster, by its name, to its resource version.
func (c *Subject) versions() map[string]string {
	c.t.Helper()
	all := c.Versions()
	maps.DeleteFunc(all, func(entry, _ string) bool {
		_, name, _ := strings.Cut(entry, "/")
		return !strings.HasPrefix(name, c.Name)
	})
	return all
}
