package machineset

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/inplace"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/testenv/fakeapi"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

func updating(m *clusterv1.Machine) { inplace.Mark(m) }

func failing(m *clusterv1.Machine) {
	inplace.Mark(m)
	m.SetConditions([]metav1.Condition{report.True(clusterv1.MachineUpdatingCondition, clusterv1.MachineInPlaceUpdateFailedReason, "")})
}

func TestHandOver(t *testing.T) {
	joined := func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{Name: m.Name} }
	for _, tc := range []struct {
		reason       string
		a, b         []func(*clusterv1.Machine)
		n            int
		move, remove []string
	}{
		{reason: "surplus Machines move", n: 1, move: []string{"a"}},
		{reason: "all of them", n: 2, move: []string{"a", "b"}},
		{reason: "one that is being deleted is surplus already", b: []func(*clusterv1.Machine){deleting}, n: 1},
		{reason: "one that is marked for deletion is deleted", b: []func(*clusterv1.Machine){marked}, n: 1, remove: []string{"b"}},
		{reason: "an unhealthy one, too", b: []func(*clusterv1.Machine){nodeUnhealthy}, n: 2, remove: []string{"b"}, move: []string{"a"}},
		{reason: "one without a Node waits, and no other one moves in its place", b: []func(*clusterv1.Machine){withoutNode}, n: 1},
		{reason: "one that is being updated waits", b: []func(*clusterv1.Machine){updating}, n: 1},
		{reason: "one whose update failed is deleted", b: []func(*clusterv1.Machine){failing}, n: 1, remove: []string{"b"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			of := func(name string, change []func(*clusterv1.Machine)) *clusterv1.Machine {
				return machine(name, 0, append([]func(*clusterv1.Machine){joined}, change...)...)
			}
			move, remove := handOver(&clusterv1.MachineSet{}, []*clusterv1.Machine{of("a", tc.a), of("b", tc.b)}, tc.n, object.Now())
			named := func(machines []*clusterv1.Machine) (out []string) {
				for _, m := range machines {
					out = append(out, m.Name)
				}
				return out
			}
			if diff := cmp.Diff([][]string{tc.move, tc.remove}, [][]string{named(move), named(remove)}); diff != "" {
				t.Errorf("moved and deleted (-want +got):\n%s", diff)
			}
		})
	}
}

// handingOver is a world with set "s", whose three Machines are to move to set "n", which has another version and templates.
type handingOver struct {
	*stale
	from, to *clusterv1.MachineSet
}

func newHandingOver(t *testing.T) *handingOver {
	t.Helper()
	w := &handingOver{stale: newStale(t)}
	w.controller.inPlace = true
	w.create(w.build.Template(infrastructure("InMemoryMachineTemplate"), "large"))
	w.create(w.build.Template(bootstrap("KubeadmConfigTemplate"), "limited"))
	w.from = w.set(3)
	w.reconcileAll(w.from)
	for _, m := range w.machines() {
		w.bringUp(&m)
	}
	// It exists: the garbage collector would delete the sets.
	md := w.build.MachineDeployment("md", func(md *clusterv1.MachineDeployment) {
		md.Spec.Replicas, md.Spec.Template = new(int32), *w.from.Spec.Template.DeepCopy()
		md.Spec.Selector = w.from.Spec.Selector
	})
	w.create(md)
	owner := *metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind("MachineDeployment"))
	w.to = w.build.MachineSet("n", func(set *clusterv1.MachineSet) {
		set.OwnerReferences = []metav1.OwnerReference{owner}
		set.Annotations = map[string]string{clusterv1.MachineSetReceiveMachinesFromMachineSetsAnnotation: "s"}
		set.Spec.Replicas, set.Spec.Deletion.Order = new(int32), "Random"
		template := &set.Spec.Template.Spec
		template.Version = "v1.30.1"
		template.Bootstrap.ConfigRef = *object.Reference(bootstrap("KubeadmConfigTemplate"), "limited")
		template.InfrastructureRef = *object.Reference(infrastructure("InMemoryMachineTemplate"), "large")
	})
	w.create(w.to)
	w.change(w.from, func() {
		w.from.OwnerReferences = []metav1.OwnerReference{owner}
		metav1.SetMetaDataAnnotation(&w.from.ObjectMeta, clusterv1.MachineSetMoveMachinesToMachineSetAnnotation, "n")
		w.from.Spec.Replicas = new(int32)
	})
	return w
}

// acknowledge raises the replicas of the new set by the Machines that have arrived, like the MachineDeployment controller.
func (w *handingOver) acknowledge() {
	w.Helper()
	w.change(w.to, func() {
		list := ""
		for _, m := range w.machines() {
			if !metav1.IsControlledBy(&m, w.to) || !inplace.IsMoved(&m) {
				continue
			}
			if !inplace.IsAcknowledged(w.to, &m) {
				*w.to.Spec.Replicas++
			}
			list += m.Name + ","
		}
		metav1.SetMetaDataAnnotation(&w.to.ObjectMeta, clusterv1.AcknowledgedMoveAnnotation, list)
	})
}

// check checks that the Machines are all in the new set, and written as it demands.
func (w *handingOver) check(names []string) {
	w.Helper()
	if diff := cmp.Diff(names, w.names()); diff != "" {
		w.Errorf("Machines (-want +got):\n%s", diff)
	}
	for _, m := range w.machines() {
		infra, config := w.get(&m.Spec.InfrastructureRef), w.get(&m.Spec.Bootstrap.ConfigRef)
		of := []string{infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation], config.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]}
		if diff := cmp.Diff([]string{"large", "limited"}, of); diff != "" || m.Spec.Version != "v1.30.1" {
			w.Errorf("Machine %s has version %s; templates (-want +got):\n%s", m.Name, m.Spec.Version, diff)
		}
		if !inplace.IsMarked(infra) || !inplace.IsMarked(config) || !inplace.IsMarked(&m) || !inplace.IsPending(&m) || inplace.IsMoved(&m) {
			w.Errorf("marks of Machine %s: %v, %v, %v", m.Name, m.Annotations, infra.GetAnnotations(), config.GetAnnotations())
		}
		if len(m.OwnerReferences) != 1 || !metav1.IsControlledBy(&m, w.to) || m.Labels[clusterv1.MachineSetNameLabel] != "n" {
			w.Errorf("owners %v, labels %v of Machine %s", m.OwnerReferences, m.Labels, m.Name)
		}
	}
}

func TestMove(t *testing.T) {
	w := newHandingOver(t)
	names := w.names()
	w.api.Writes = nil
	w.reconcileAll(w.from)
	moves := 0
	for _, write := range w.api.Writes {
		for _, name := range names {
			if write == "patch Machine "+name {
				moves++
			}
		}
	}
	if moves != 3 {
		t.Errorf("each Machine moves in one write: %q", w.api.Writes)
	}
	w.reconcileAll(w.to)
	w.wantMachines(3, "moved Machines are no replicas yet, and not deleted")
	for _, m := range w.machines() {
		if !inplace.IsMoved(&m) || inplace.IsPending(&m) || m.Spec.Version != "v1.30.0" {
			t.Errorf("Machine %s is not left alone until it is acknowledged: %v", m.Name, m.Annotations)
		}
	}
	w.acknowledge()
	w.reconcileAll(w.to)
	w.check(names)
}

// Without a set that expects them, Machines neither move nor are deleted.
func TestMoveWithoutTarget(t *testing.T) {
	w := newHandingOver(t)
	w.change(w.to, func() { w.to.Annotations = nil })
	w.reconcileAll(w.from)
	for _, m := range w.machines() {
		if !metav1.IsControlledBy(&m, w.from) || inplace.IsUpdating(&m) {
			t.Errorf("Machine %s was moved: %v", m.Name, m.OwnerReferences)
		}
	}
	w.wantMachines(3, "the MachineDeployment decides anew")
}

// TestMoveSurvivesKills kills the manager at every second write, before it or before its response.
func TestMoveSurvivesKills(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("response lost: %t", lost), func(t *testing.T) {
			w := newHandingOver(t)
			names, writes := w.names(), 0
			kill := func(r fakeapi.Request) error {
				if !r.IsWrite() {
					return nil
				}
				if writes++; writes%2 == 1 {
					return errors.New("killed")
				}
				return nil
			}
			if lost {
				w.api.After = func(r fakeapi.Request, err error) error { return errors.Join(err, kill(r)) }
			} else {
				w.api.Before = kill
			}
			for range 12 {
				for _, set := range []*clusterv1.MachineSet{w.from, w.to} {
					w.restartController()
					w.controller.inPlace = true
					_ = w.reconcile(set) // It is killed.
				}
				w.acknowledge()
			}
			w.api.Before, w.api.After = nil, nil
			w.reconcileAll(w.from)
			w.acknowledge()
			w.reconcileAll(w.to)
			if writes < 12 {
				t.Errorf("only %d writes were disturbed", writes)
			}
			w.check(names)
		})
	}
}

// A cache that still shows Machines of the old set does not make the new one create others.
func TestMoveWithStaleCache(t *testing.T) {
	w := newHandingOver(t)
	names := w.names()
	w.api.Cache.Freeze(&clusterv1.MachineList{})
	w.reconcileAll(w.from)
	w.acknowledge()
	for range 4 {
		_ = w.reconcile(w.to) // Its writes may be conflicts.
	}
	if diff := cmp.Diff(names, w.names()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, m := range w.machines() {
		if !ownership.Has(&m, w.to) {
			t.Errorf("Machine %s has not moved", m.Name)
		}
	}
}
