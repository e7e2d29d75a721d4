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
	"sigs.k8s.io/cluster-api/provider/condition"
)

// moment is when the management cluster is killed: as soon as the condition is true.
type moment struct {
	reason string
	until  Condition
}

// TestSurvivesKills kills the management cluster at ten moments of a Cluster's creation and upgrade. The Cluster ends
// as one does that nobody disturbed: no Machine, Secret, etcd member or other thing more or less.
func TestSurvivesKills(t *testing.T) {
	t.Parallel()
	const controlPlanes, workers = 3, 2
	forEachTemplate(t, func(t *testing.T, calm *World, template Template) {
		var undisturbed, killed []string
		t.Run("undisturbed", func(t *testing.T) {
			t.Parallel()
			w := *calm
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
			w.patience = calm.patience
			c := w.Subject(NewCluster("killed", w.Class(template)).ControlPlanes(controlPlanes).Workers(workers).Build())
			killed = surviveKills(s, c, controlPlanes, workers)
			c.Gone()
		})
		t.Cleanup(func() { // After both, unless only one was asked for.
			if diff := cmp.Diff(undisturbed, killed); diff != "" && undisturbed != nil && killed != nil {
				t.Errorf("what there is in the end (-undisturbed +killed):\n%s", diff)
			}
		})
	})
}

// surviveKills brings a Cluster up and upgrades it, with ten interruptions, and returns what there is in the end.
func surviveKills(s *Standalone, c *Subject, controlPlanes, workers int) []string {
	t := c.t
	t.Helper()
	for _, m := range creation() {
		killAt(s, c, m, controlPlanes, workers)
	}
	c.Eventually("it comes up", Ready, ControlPlanes(controlPlanes), Workers(workers), c.Agrees)
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "note"}, Data: map[string]string{"k": "v"}}
	if err := c.Workload().client.Create(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	c.Change(setVersion(newer))
	for _, m := range rollout() {
		killAt(s, c, m, controlPlanes, workers)
	}
	c.Eventually("it is upgraded", Ready, ControlPlanes(controlPlanes), Workers(workers), Version(newer), c.Agrees)
	kept := &corev1.ConfigMap{}
	if err := c.Workload().client.Get(t.Context(), client.ObjectKeyFromObject(note), kept); err != nil || kept.UID != note.UID {
		t.Errorf("what a user made in the workload cluster is there after five kills: %v, %v", kept, err)
	}
	return shape(c)
}

// killAt kills the management cluster at a moment, starts it again and lets the Cluster be seen through the new one.
func killAt(s *Standalone, c *Subject, m moment, controlPlanes, workers int) {
	c.t.Helper()
	still := c.Always("there are never more Machines than strategies allow", AtMost(controlPlanes+1, workers+1))
	c.Eventually(m.reason, m.until)
	still()
	s.Kill()
	s.Restart()
	c.World = &World{Management: s.Management(), Namespace: c.Namespace, t: c.t, patience: c.patience}
}

func creation() []moment {
	return []moment{
		{"nothing is known but the Cluster", Present},
		{"the control plane is declared, without Machines", func(p *Picture) error { return atLeast(len(p.ControlPlanes.Items), 1) }},
		{"the first Machine is being made", func(p *Picture) error { return atLeast(len(p.ControlPlane()), 1) }},
		{"the control plane has just come to life", func(p *Picture) error {
			if !condition.IsTrue(p.Cluster, clusterv1.ControlPlaneInitializedCondition) {
				return fmt.Errorf("the control plane is not initialized")
			}
			return nil
		}},
		{"the second control plane Machine joins etcd", func(p *Picture) error { return atLeast(len(p.ControlPlane()), 2) }},
	}
}

func rollout() []moment {
	upgraded := func(p *Picture) int { return count(p.ControlPlane(), ofVersion(newer)) }
	return []moment{
		{"the first new control plane Machine is being made", func(p *Picture) error { return atLeast(upgraded(p), 1) }},
		{"an old control plane Machine leaves etcd", Either(
			func(p *Picture) error { return atLeast(count(p.ControlPlane(), deleting), 1) },
			func(p *Picture) error { return atLeast(upgraded(p), 2) },
		)},
		{"the last control plane Machine is being replaced", func(p *Picture) error { return atLeast(upgraded(p), 3) }},
		{"the first new worker is being made", func(p *Picture) error { return atLeast(count(p.Workers(), ofVersion(newer)), 1) }},
		{"an old worker goes", Either(
			func(p *Picture) error { return atLeast(count(p.Workers(), deleting), 1) },
			func(p *Picture) error { return atLeast(count(p.Workers(), ofVersion(newer)), 2) },
		)},
	}
}

func deleting(m *clusterv1.Machine) bool { return !m.DeletionTimestamp.IsZero() }

func atLeast(have, want int) error {
	if have < want {
		return fmt.Errorf("%d so far, want %d", have, want)
	}
	return nil
}

// generated is the suffix of a generated name.
var generated = regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{5}\b`)

// shape is what there is, without what differs from Cluster to Cluster.
func shape(c *Subject) []string {
	c.t.Helper()
	entries := c.Inventory()
	for i, entry := range entries {
		entries[i] = generated.ReplaceAllString(entry, "-*")
	}
	slices.Sort(entries)
	return entries
}
