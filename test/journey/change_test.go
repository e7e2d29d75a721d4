package journey

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

const (
	otherClass     = "other-class"
	otherBootstrap = "other-bootstrap"
)

// fixture is a Cluster with one control plane Machine and two workers. Its namespace has another bootstrap template for
// workers, and another class, which is the Cluster's class with that template.
type fixture struct {
	*Subject
	class, bootstrap string // the names of the Cluster's class and bootstrap template
}

// createReady creates a fixture and waits until the Cluster is ready.
func createReady(w *World, template Template, name string) fixture {
	w.t.Helper()
	s := create(w, template, name)
	s.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), s.WorkloadMatches)
	return s
}

// create creates a fixture.
func create(w *World, template Template, name string) fixture {
	w.t.Helper()
	s := fixture{class: w.Class(template)}
	s.bootstrap = w.createOther(s.class)
	s.Subject = w.Subject(NewCluster(name, s.class).Workers(2).Build())
	return s
}

// TestLabelsChangeInPlace checks that labels and annotations are propagated to all objects and Nodes, without a rollout.
func TestLabelsChangeInPlace(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := createReady(w, template, "labels")
		before := c.Snapshot()
		still := c.Always("labels do not replace Machines", SameMachines((*Snapshot).ControlPlane, before), SameMachines((*Snapshot).Workers, before))
		const plain, forNodes = "team", "node.cluster.x-k8s.io/flavor"
		c.Change(func(cluster *clusterv1.Cluster) {
			cluster.Spec.Topology.ControlPlane.Metadata = clusterv1.ObjectMeta{Labels: map[string]string{plain: "blue", forNodes: "big"}}
			cluster.Spec.Topology.Workers.MachineDeployments[0].Metadata = clusterv1.ObjectMeta{
				Labels: map[string]string{plain: "red", forNodes: "small"}, Annotations: map[string]string{"note": "hot"},
			}
		})
		c.Eventually("Machines and their Nodes get the labels", Ready, func(p *Snapshot) error {
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
	})
}

// TestVariableRollsOut changes a variable that patches machine templates, so all Machines are rolled out.
func TestVariableRollsOut(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := createReady(w, w.Tools.ProjectTemplate(), "variable")
	before := c.Snapshot()
	still := c.Always("a rollout follows the strategies", AvailableControlPlane(1), AvailableWorkers(2), AtMost(2, 3))
	consistent := c.EtcdIsConsistent(1, 2)
	c.Change(setVariable("startupDuration", "250ms"))
	c.Eventually("every Machine is replaced", Ready, ControlPlanes(1), Workers(2),
		NewMachines((*Snapshot).ControlPlane, before), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches)
	still()
	consistent()
	for _, m := range c.Snapshot().Machines.Items {
		machine := object(m.Spec.InfrastructureRef.APIVersion, m.Spec.InfrastructureRef.Kind, c.Namespace, m.Spec.InfrastructureRef.Name)
		c.read(machine)
		if d, _, _ := unstructured.NestedString(machine.Object, "spec", "behaviour", "vm", "provisioning", "startupDuration"); d != "250ms" {
			t.Errorf("%s %s has startupDuration %q", machine.GetKind(), machine.GetName(), d)
		}
	}
	c.Gone()
}

// read reads an object.
func (w *World) read(o client.Object) {
	w.t.Helper()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatalf("reading %s %s: %v", kindOf(o), o.GetName(), err)
	}
}

// createOther applies the other bootstrap template and the other class, and returns the name of the class's bootstrap
// template.
func (w *World) createOther(name string) string {
	w.t.Helper()
	class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	w.read(class)
	ref := class.Spec.Workers.MachineDeployments[0].Template.Bootstrap.Ref
	bootstrap := ref.Name
	template := object(ref.APIVersion, ref.Kind, w.Namespace, ref.Name)
	w.read(template)
	copied := object(ref.APIVersion, ref.Kind, w.Namespace, otherBootstrap)
	copied.Object["spec"] = template.Object["spec"]
	if err := unstructured.SetNestedStringSlice(copied.Object, []string{"echo hello"}, "spec", "template", "spec", "preKubeadmCommands"); err != nil {
		w.t.Fatal(err)
	}
	ref.Name = otherBootstrap
	w.Applied(copied, &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Name: otherClass}, Spec: class.Spec})
	return bootstrap
}

// TestClassChangesTemplate checks that a change of one template in a class rolls out only its Machines.
func TestClassChangesTemplate(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := createReady(w, template, "template")
		before := c.Snapshot()
		still := c.Always("only workers are replaced", SameMachines((*Snapshot).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
		class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.class}}
		c.update(class, func() { class.Spec.Workers.MachineDeployments[0].Template.Bootstrap.Ref.Name = otherBootstrap })
		c.Eventually("the workers are replaced", Ready, Workers(2), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches)
		still()
		c.Gone()
	})
}

// update reads, changes and updates an object, and retries on conflicts.
func (w *World) update(o client.Object, change func()) {
	w.t.Helper()
	for {
		w.read(o)
		change()
		err := w.Client.Update(w.t.Context(), o)
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			w.t.Fatalf("changing %s %s: %v", kindOf(o), o.GetName(), err)
		}
		return
	}
}

// TestClusterIsRebased checks that a Cluster that is moved to another class keeps the Machines that both classes define alike.
func TestClusterIsRebased(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := createReady(w, template, "rebase")
		before := c.Snapshot()
		still := c.Always("only workers are replaced", SameMachines((*Snapshot).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
		c.Change(setClass(otherClass))
		c.Eventually("the workers are replaced by those of the new class", Ready, ControlPlanes(1), Workers(2), NewMachines((*Snapshot).Workers, before), c.WorkloadMatches)
		still()
		if err := c.Client.Delete(t.Context(), &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.class}}); err != nil {
			t.Errorf("deleting the class, which is no longer in use: %v", err)
		}
		// The garbage collector deletes the template that only the class used.
		gone := []string{"clusterclasses/" + c.class, "kubeadmconfigtemplates/" + c.bootstrap}
		c.before = slices.DeleteFunc(c.before, func(entry string) bool { return slices.Contains(gone, entry) })
		c.Gone()
	})
}

// TestPausedCluster checks that the objects of a paused Cluster are not changed, and that it converges when it is resumed.
func TestPausedCluster(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := create(w, template, "paused")
		other := w.Subject(NewCluster("other", c.class).Build())
		c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), c.WorkloadMatches)
		other.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), other.WorkloadMatches)

		c.Change(setPaused(true))
		c.Change(SetWorkers(3))
		paused := c.versions()
		c.Eventually("the pause is explained", c.Explains("Paused Cluster"))
		// While another Cluster is reconciled, this one would have been, too.
		other.Change(SetWorkers(1))
		other.Eventually("the other Cluster is scaled up", Ready, Workers(1), other.WorkloadMatches)
		other.Change(SetWorkers(0))
		other.Eventually("the other Cluster is scaled down", Ready, Workers(0), other.WorkloadMatches)
		if diff := cmp.Diff(paused, c.versions()); diff != "" {
			t.Errorf("objects of a paused Cluster were changed (-before +after):\n%s", diff)
		}

		c.Change(setPaused(false))
		c.Eventually("the resumed Cluster is scaled", Ready, ControlPlanes(1), Workers(3), c.WorkloadMatches)
		other.Delete()
		c.Gone()
	})
}

// versions returns the resource versions of the objects whose names have the Cluster's name as prefix.
func (c *Subject) versions() map[string]string {
	c.t.Helper()
	all := c.Versions()
	maps.DeleteFunc(all, func(entry, _ string) bool {
		_, name, _ := strings.Cut(entry, "/")
		return !strings.HasPrefix(name, c.Name)
	})
	return all
}
