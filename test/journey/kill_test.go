package journey

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// killPoint is when to kill the management cluster: as soon as the condition is true.
type killPoint struct {
	reason string
	until  Condition
}

// TestSurvivesKills kills the management cluster ten times during a Cluster's creation and upgrade. The final objects, such as
// Machines and Secrets, and etcd members are the same as without kills.
func TestSurvivesKills(t *testing.T) {
	t.Parallel()
	const controlPlanes, workers = 3, 2
	forEachTemplate(t, func(t *testing.T, base *World, template Template) {
		var undisturbed, killed []string
		t.Run("undisturbed", func(t *testing.T) {
			t.Parallel()
			w := *base
			w.t = t
			c := w.Subject(NewCluster("killed", w.Class(template)).ControlPlanes(controlPlanes).Workers(workers).Build())
			upgrade(c, controlPlanes, workers)
			undisturbed = shape(c)
		})
		t.Run("killed", func(t *testing.T) {
			t.Parallel()
			s := NewStandalone(t, shared.Management(t).Tools)
			if err := s.tools.install(t.Context(), s.kubeconfig()); err != nil {
				t.Fatal(err)
			}
			w := s.Management().World(t)
			w.timeout = base.timeout
			c := w.Subject(NewCluster("killed", w.Class(template)).ControlPlanes(controlPlanes).Workers(workers).Build())
			killed = surviveKills(s, c, controlPlanes, workers)
			c.Gone()
		})
		t.Cleanup(func() { // After both subtests, unless only one was selected.
			if diff := cmp.Diff(undisturbed, killed); diff != "" && undisturbed != nil && killed != nil {
				t.Errorf("final objects (-undisturbed +killed):\n%s", diff)
			}
		})
	})
}

// surviveKills creates and upgrades a Cluster, with ten kills, and returns its final shape.
func surviveKills(s *Standalone, c *Subject, controlPlanes, workers int) []string {
	t := c.t
	t.Helper()
	for _, m := range creation() {
		killAt(s, c, m, controlPlanes, workers)
	}
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(controlPlanes), Workers(workers), c.WorkloadMatches)
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "note"}, Data: map[string]string{"k": "v"}}
	if err := c.Workload().client.Create(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	c.Change(SetVersion(newer))
	for _, m := range rollout() {
		killAt(s, c, m, controlPlanes, workers)
	}
	c.Eventually("the Cluster is upgraded", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(newer), c.WorkloadMatches)
	kept := &corev1.ConfigMap{}
	if err := c.Workload().client.Get(t.Context(), client.ObjectKeyFromObject(note), kept); err != nil || kept.UID != note.UID {
		t.Errorf("an object in the workload cluster was lost or replaced: %v, %v", kept, err)
	}
	return shape(c)
}

// killAt kills the management cluster at a killPoint, starts it again, and connects to the new process.
func killAt(s *Standalone, c *Subject, m killPoint, controlPlanes, workers int) {
	c.t.Helper()
	still := c.Always("never more Machines than the strategies allow", AtMost(controlPlanes+1, workers+1))
	c.Eventually(m.reason, m.until)
	still()
	s.Kill()
	s.Restart()
	c.World = &World{Management: s.Management(), Namespace: c.Namespace, t: c.t, timeout: c.timeout}
}

func creation() []killPoint {
	return []killPoint{
		{"only the Cluster exists", Present},
		{"the control plane has no Machines", func(p *Snapshot) error { return atLeast(len(p.ControlPlanes.Items), 1) }},
		{"the first Machine is being created", func(p *Snapshot) error { return atLeast(len(p.ControlPlane()), 1) }},
		{"the control plane has just been initialized", func(p *Snapshot) error {
			if !ConditionIsTrue(p.Cluster, clusterv1.ControlPlaneInitializedCondition) {
				return fmt.Errorf("the control plane is not initialized")
			}
			return nil
		}},
		{"the second control plane Machine joins etcd", func(p *Snapshot) error { return atLeast(len(p.ControlPlane()), 2) }},
	}
}

func rollout() []killPoint {
	upgraded := func(p *Snapshot) int { return count(p.ControlPlane(), ofVersion(newer)) }
	return []killPoint{
		{"the first new control plane Machine is being created", func(p *Snapshot) error { return atLeast(upgraded(p), 1) }},
		{"an old control plane Machine is removed from etcd", Either(
			func(p *Snapshot) error { return atLeast(count(p.ControlPlane(), deleting), 1) },
			func(p *Snapshot) error { return atLeast(upgraded(p), 2) },
		)},
		{"the last control plane Machine is being replaced", func(p *Snapshot) error { return atLeast(upgraded(p), 3) }},
		{"the first new worker is being created", func(p *Snapshot) error { return atLeast(count(p.Workers(), ofVersion(newer)), 1) }},
		{"an old worker is being deleted", Either(
			func(p *Snapshot) error { return atLeast(count(p.Workers(), deleting), 1) },
			func(p *Snapshot) error { return atLeast(count(p.Workers(), ofVersion(newer)), 2) },
		)},
	}
}

func deleting(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }

func atLeast(have, want int) error {
	if have < want {
		return fmt.Errorf("%d, want at least %d", have, want)
	}
	return nil
}

// generated matches the suffix of a generated name.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// shape returns the inventory without what differs from Cluster to Cluster.
func shape(c *Subject) []string {
	c.t.Helper()
	c.Eventually("what belonged to replaced Machines is collected", func(*Snapshot) error { return c.garbage() })
	entries := c.Inventory()
	for i, entry := range entries {
		entries[i] = generated.ReplaceAllString(entry, "-*")
	}
	slices.Sort(entries)
	return entries
}
