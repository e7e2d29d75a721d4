package machinedeployment

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/machineset"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

const checked = "example.com/Checked"

func passed(m *clusterv1.Machine) {
	c := metav1.Condition{Type: checked, Status: metav1.ConditionTrue, Reason: "Checked", LastTransitionTime: metav1.NewTime(time.Now())}
	m.SetConditions(append(m.GetConditions(), c))
}

// TestReadinessGatesHoldARollout: a Machine whose Node is ready does not replace another one before its readiness gates are healthy.
func TestReadinessGatesHoldARollout(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1, func(md *clusterv1.MachineDeployment) {
		md.Spec.Template.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: checked}}
	})
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	pass := func(version string) {
		machines := w.machines()
		for i := range machines {
			if m := &machines[i]; m.Spec.Version == version {
				before := m.DeepCopy()
				passed(m)
				testenv.Must(t, w.Status().Patch(t.Context(), m, client.MergeFrom(before)))
			}
		}
	}
	pass("v1.30.0")
	w.change(md, version(md, "v1.31.0"))
	w.eventuallyIs(md, " 2/1/2/2/0, r1 v1.30.0 1/1, r2 v1.31.0 1/1")
	// Another change shows that the MachineDeployment was reconciled with both Machines ready.
	w.change(md, func() { md.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder })
	w.eventually("the change arrives", func() error {
		if sets := w.sets(); len(sets) != 2 || sets[1].Spec.Deletion.Order != clusterv1.OldestMachineSetDeletionOrder {
			return errors.New("not yet")
		}
		return nil
	})
	w.eventuallyIs(md, " 2/1/2/2/0, r1 v1.30.0 1/1, r2 v1.31.0 1/1")
	pass("v1.31.0")
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 0/0, r2 v1.31.0 1/1")
}

// TestMachineChanges lists the changes of Machines that concern MachineDeployments besides the status of their MachineSets.
func TestMachineChanges(t *testing.T) {
	gated := func(change ...func(*clusterv1.Machine)) *clusterv1.Machine {
		m := &clusterv1.Machine{Spec: clusterv1.MachineSpec{ReadinessGates: []clusterv1.MachineReadinessGate{{ConditionType: checked}}}}
		for _, f := range change {
			f(m)
		}
		return m
	}
	deleting := func(m *clusterv1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: time.Now()} }
	for _, tt := range []struct {
		reason        string
		before, after *clusterv1.Machine
		want          bool
	}{
		{"nothing changes", gated(), gated(), false},
		{"the deletion starts", gated(), gated(deleting), true},
		{"the deletion continues", gated(deleting), gated(deleting), false},
		{"its gate becomes healthy", gated(), gated(passed), true},
		{"its gate is no longer healthy", gated(passed), gated(), true},
		{"it has no gates", &clusterv1.Machine{}, &clusterv1.Machine{Status: clusterv1.MachineStatus{Phase: "Running"}}, false},
	} {
		if got := machineChanges().Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.reason, got, tt.want)
		}
	}
}

// TestNextPassing: the time until a Machine passes its gates for long enough passes without an event.
func TestNextPassing(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		tallies []machineset.Tally
		want    time.Duration
	}{
		{"none", nil, 0},
		{"its MachineSet reports when a Machine without gates becomes available", []machineset.Tally{{Ready: 1, NextAvailable: time.Second}}, 0},
		{"a gate is not healthy", []machineset.Tally{{Ready: 1, Available: 1}}, 0},
		{"the next of two", []machineset.Tally{
			{Ready: 1, Available: 1, NextAvailable: 3 * time.Second}, {Ready: 1, Available: 1, NextAvailable: 2 * time.Second},
		}, 2 * time.Second},
	} {
		s := &scope{tallies: map[types.UID]*machineset.Tally{}}
		for i := range tt.tallies {
			s.tallies[types.UID(rune('a'+i))] = &tt.tallies[i]
		}
		if got := s.nextPassing(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.reason, got, tt.want)
		}
	}
}
