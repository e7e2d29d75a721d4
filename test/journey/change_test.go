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

// scene is a Cluster that is up, with one control plane Machine and two workers. In its namespace are another bootstrap
// template for workers, and a class that differs from the Cluster's in using that one.
type scene struct {
	*Subject
	class, bootstrap string // what the Cluster is of
}

// up returns it when it is up.
func up(w *World, template Template, name string) scene {
	w.t.Helper()
	s := begin(w, template, name)
	s.Eventually("it comes up", Ready, ControlPlanes(1), Workers(2), s.Agrees)
	return s
}

// begin returns it at once.
func begin(w *World, template Template, name string) scene {
	w.t.Helper()
	s := scene{class: w.Class(template)}
	s.bootstrap = w.others(s.class)
	s.Subject = w.Subject(NewCluster(name, s.class).Workers(2).Build())
	return s
}

// Labels and annotations reach everything that exists, down to the Nodes, and replace nothing.
func TestLabelsChangeInPlace(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := up(w, template, "labels")
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
	})
}

// A variable that patches machine templates replaces all Machines, by the strategies of control plane and workers.
func TestVariableRollsOut(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := up(w, w.Tools.ProjectTemplate(), "variable")
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

// others applies the other bootstrap template and the other class, and returns the name of the bootstrap template that
// the class itself uses.
func (w *World) others(name string) string {
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

// A class that takes another template replaces what was made of the old one, and nothing else.
func TestClassTakesOtherTemplate(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := up(w, template, "template")
		before := c.Picture()
		still := c.Always("only workers are replaced", SameMachines((*Picture).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
		class := &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.class}}
		c.update(class, func() { class.Spec.Workers.MachineDeployments[0].Template.Bootstrap.Ref.Name = otherBootstrap })
		c.Eventually("the workers are replaced", Ready, Workers(2), NewMachines((*Picture).Workers, before), c.Agrees)
		still()
		c.Gone()
	})
}

// update changes an object as an editor does: what others changed in between is kept.
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

// A Cluster that moves to another class keeps what both classes make alike.
func TestRebases(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := up(w, template, "rebase")
		before := c.Picture()
		still := c.Always("only workers are replaced", SameMachines((*Picture).ControlPlane, before), AvailableWorkers(2), AtMost(1, 3))
		c.Change(setClass(otherClass))
		c.Eventually("the workers are those of the new class", Ready, ControlPlanes(1), Workers(2), NewMachines((*Picture).Workers, before), c.Agrees)
		still()
		if err := c.Client.Delete(t.Context(), &clusterv1.ClusterClass{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.class}}); err != nil {
			t.Errorf("the class that nobody uses any more can be deleted: %v", err)
		}
		// With the class goes the template that only it used.
		gone := []string{"clusterclasses/" + c.class, "kubeadmconfigtemplates/" + c.bootstrap}
		c.before = slices.DeleteFunc(c.before, func(entry string) bool { return slices.Contains(gone, entry) })
		c.Gone()
	})
}

// Nobody touches what belongs to a paused Cluster; afterwards it catches up.
func TestPauses(t *testing.T) {
	t.Parallel()
	forEachTemplate(t, func(t *testing.T, w *World, template Template) {
		c := begin(w, template, "paused")
		other := w.Subject(NewCluster("other", c.class).Build())
		c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(2), c.Agrees)
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
	})
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
