package journey

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// reality is what runs in a workload cluster.
type reality struct{ Nodes, Members []string }

func (c *Subject) reality(member string) reality {
	c.t.Helper()
	var r reality
	nodes, err := c.Workload().Nodes(c.t.Context())
	testenv.Must(c.t, err)
	for _, node := range nodes {
		r.Nodes = append(r.Nodes, node.Name+" "+node.Spec.ProviderID)
	}
	r.Members, err = c.Workload().Members(c.t.Context(), member)
	testenv.Must(c.t, err)
	return r
}

// TestRestoredManagementClusterIsOlder restores a backup of a management cluster after a Cluster has got more Machines, and one of them was
// replaced. What runs is newer than the objects then. Nothing of it is lost or changed: the Cluster waits for a user, and new Machines get
// names of their own. A Cluster that has not changed goes on by itself.
func TestRestoredManagementClusterIsOlder(t *testing.T) {
	t.Parallel()
	s := NewStandalone(t, shared.Management(t).Tools)
	testenv.Must(t, s.tools.install(t.Context(), s.kubeconfig()))
	w := s.Management().World(t)
	class := w.Class(w.Tools.ProjectTemplate())
	grows := w.Subject(NewCluster("grows", class).ControlPlanes(1).Workers(2).Build())
	same := w.Subject(NewCluster("same", class).ControlPlanes(1).Workers(1).Build())
	grows.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(2), grows.WorkloadMatches)
	same.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), same.WorkloadMatches)

	file, key := filepath.Join(s.directory, "mgmt.backup"), filepath.Join(s.directory, "key")
	s.capi("backup", "--generate-key", key)
	s.capi("backup", "--data-dir", filepath.Join(s.directory, "data"), "--identity-file", key, file)
	saved, savedSame := grows.Snapshot(), same.Snapshot()

	replaced := grows.Snapshot().Workers()[0]
	testenv.Must(t, w.Client.Delete(t.Context(), &replaced))
	grows.Change(SetControlPlanes(3))
	grows.Change(SetWorkers(3))
	grows.Eventually("Machines are added, and one is replaced", Ready, ControlPlanes(3), Workers(3), grows.WorkloadMatches,
		NewMachines(workerNamed(replaced.Name), saved))
	newest := grows.Snapshot()
	member := saved.ControlPlane()[0].Status.NodeRef.Name
	want := grows.reality(member)
	wantSame := same.reality(savedSame.ControlPlane()[0].Status.NodeRef.Name)

	s.RestoreInto(t.TempDir(), file, key)
	w = s.Management().World(t)
	w.Namespace = grows.Namespace
	grows, same = grows.Moved(w), same.Moved(w)

	same.Eventually("a Cluster that has not changed is resumed", Ready, ControlPlanes(1), Workers(1), same.WorkloadMatches, resumed,
		SameMachines(func(p *Snapshot) []clusterv1.Machine { return p.Machines.Items }, savedSame))
	if diff := cmp.Diff(wantSame, same.reality(savedSame.ControlPlane()[0].Status.NodeRef.Name)); diff != "" {
		t.Errorf("what runs in a Cluster that has not changed (-before +after):\n%s", diff)
	}
	message := fmt.Sprintf("Nodes without a Machine: %s; Machines without their Node: %s; compare them, and set spec.paused to false",
		strings.Join(added(newest, saved), ", "), replaced.Name)
	grows.Eventually("the Cluster waits, and reports the differences", func(p *Snapshot) error {
		return waitsFor(p.Cluster, message)
	})
	if r := s.tools.Clusterctl(t.Context(), "", "describe", "cluster", grows.Name, "-n", grows.Namespace, "--kubeconfig", s.kubeconfig(),
		"--show-conditions", "all"); r.Failed || !strings.Contains(r.Out, string(clusterv1beta2.BackupUpToDateV1Beta1Condition)) {
		t.Errorf("clusterctl does not show the differences: %v", r)
	}
	if diff := cmp.Diff(want, grows.reality(member)); diff != "" {
		t.Errorf("what runs in the Cluster that waits (-before +after):\n%s", diff)
	}
	grows.resumeOlder(newest, want, member)
}

// resumeOlder resumes the Cluster as a user does, and scales it to what runs. Machines that the backup does not have keep their Nodes and
// etcd members, and none of their names is used.
func (c *Subject) resumeOlder(newest *Snapshot, want reality, member string) {
	t := c.t
	t.Helper()
	c.Change(setPaused(false))
	c.Eventually("the restored Cluster goes on", resumed)
	before := c.Snapshot()
	c.Change(SetControlPlanes(3))
	c.Change(SetWorkers(3))
	names := map[string]bool{}
	for _, m := range newest.Machines.Items {
		names[m.Name] = true
	}
	for _, m := range before.Machines.Items {
		delete(names, m.Name) // They are in the backup.
	}
	c.Eventually("Machines are added", func(p *Snapshot) error {
		var fresh []string
		for _, m := range p.Machines.Items {
			if names[m.Name] {
				return fmt.Errorf("Machine %s has the name of another machine, which runs", m.Name)
			}
			if m.Status.NodeRef != nil && !slices.ContainsFunc(before.Machines.Items, func(o clusterv1.Machine) bool { return o.Name == m.Name }) {
				fresh = append(fresh, m.Name)
			}
		}
		return atLeast(len(fresh), 3)
	})
	got := c.reality(member)
	for _, node := range want.Nodes {
		if !slices.Contains(got.Nodes, node) {
			t.Errorf("Node %s is lost, of %v", node, want.Nodes)
		}
	}
	for _, m := range want.Members {
		if !slices.Contains(got.Members, m) {
			t.Errorf("etcd member %s was removed, of %v", m, want.Members)
		}
	}
}

// workerNamed selects the worker with a name.
func workerNamed(name string) func(*Snapshot) []clusterv1.Machine {
	return func(p *Snapshot) []clusterv1.Machine {
		return slices.DeleteFunc(p.Workers(), func(m clusterv1.Machine) bool { return m.Name != name })
	}
}

// added returns the Nodes of Machines that an earlier snapshot does not have, sorted.
func added(now, earlier *Snapshot) []string {
	var nodes []string
	for _, m := range now.Machines.Items {
		if !slices.ContainsFunc(earlier.Machines.Items, func(o clusterv1.Machine) bool { return o.UID == m.UID }) {
			nodes = append(nodes, m.Status.NodeRef.Name)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// waitsFor checks that a restored Cluster is paused, because of these differences.
func waitsFor(cluster *clusterv1.Cluster, message string) error {
	if !cluster.Spec.Paused {
		return fmt.Errorf("Cluster %s is not paused", cluster.Name)
	}
	for _, c := range cluster.Status.Conditions {
		if c.Type == clusterv1.ConditionType(clusterv1beta2.BackupUpToDateV1Beta1Condition) && strings.HasSuffix(c.Message, message) {
			return nil
		}
	}
	return fmt.Errorf("no condition of Cluster %s has %q: %v", cluster.Name, message, cluster.Status.Conditions)
}

// resumed is a Condition: the Cluster is no longer held back by a restore.
func resumed(p *Snapshot) error {
	if _, marked := p.Cluster.Annotations[clusterv1beta2.PausedByRestoreAnnotation]; marked || p.Cluster.Spec.Paused {
		return fmt.Errorf("paused %v, annotations %v, conditions %v", p.Cluster.Spec.Paused, p.Cluster.Annotations, p.Cluster.Status.Conditions)
	}
	return nil
}

// capi runs the program to its end.
func (s *Standalone) capi(args ...string) {
	s.t.Helper()
	if r := run(s.t.Context(), "", s.tools.Capi, args...); r.Failed {
		s.t.Fatal(r)
	}
}

// RestoreInto ends the management cluster, restores a backup of it to another directory, and starts it there. Simulated machines are as new as
// they were in the end: like real ones, they do not know about backups.
func (s *Standalone) RestoreInto(directory, file, key string) {
	s.t.Helper()
	s.Kill()
	from, to := filepath.Join(s.directory, "data"), filepath.Join(directory, "data")
	s.capi("restore", file, "--identity-file", key, "--data-dir", to)
	testenv.Must(s.t, os.RemoveAll(filepath.Join(to, "components")))
	testenv.Must(s.t, os.Rename(filepath.Join(from, "components"), filepath.Join(to, "components")))
	s.directory = directory
	s.launch()
}
