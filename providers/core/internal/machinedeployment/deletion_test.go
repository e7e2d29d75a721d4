package machinedeployment

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestDeletion deletes a MachineDeployment with the finalizers of v1.8 and later: it and its MachineSet exist as long as a Machine does. No
// garbage collector runs here.
func TestDeletion(t *testing.T) {
	const hold = "example.com/hold"
	w := newWorld(t, true)
	md := w.deployment(2, func(md *clusterv1.MachineDeployment) { md.Finalizers = []string{clusterv1.MachineDeploymentFinalizer} })
	w.eventuallyIs(md, "Running 2/2/2/2/0, r1 v1.30.0 2/2")
	patch := func(obj client.Object, change func()) {
		before := obj.DeepCopyObject().(client.Object)
		change()
		testenv.Must(t, w.Patch(t.Context(), obj, client.MergeFrom(before)))
	}
	set, held := w.sets()[0], w.machines()[0]
	patch(&set, func() { controllerutil.AddFinalizer(&set, clusterv1.MachineSetFinalizer) })
	patch(&held, func() { controllerutil.AddFinalizer(&held, hold) })

	testenv.Must(t, w.Delete(t.Context(), md))
	w.eventually("one Machine is left, and its owners say so", func() error {
		if n := len(w.machines()); n != 1 {
			return fmt.Errorf("%d Machines are left", n)
		}
		for _, o := range []client.Object{md, &set} {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || o.GetDeletionTimestamp().IsZero() {
				return fmt.Errorf("%T %s is not being deleted: %w", o, o.GetName(), err)
			}
		}
		if diff := cmp.Diff([]string{"Deleting 1 Machine", "Deleting 1 Machine"},
			[]string{deleting(md.Status.Conditions), deleting(set.Status.Conditions)}); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(&held), &held))
	patch(&held, func() { controllerutil.RemoveFinalizer(&held, hold) })
	w.eventually("nothing is left", func() error {
		err := w.Get(t.Context(), client.ObjectKeyFromObject(md), md)
		if n := len(w.machines()) + len(w.sets()); n > 0 || client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("%d MachineSets and Machines are left, and the MachineDeployment: %w", n, err)
		}
		return nil
	})
}

func deleting(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Type == clusterv1.DeletingCondition {
			return c.Message
		}
	}
	return "not reported"
}

// TestDeletionWithoutTemplates deletes MachineDeployments whose templates were deleted before, or whose kinds do not exist.
func TestDeletionWithoutTemplates(t *testing.T) {
	tests := []struct {
		reason, kind string
	}{
		{reason: "the template does not exist", kind: "InMemoryMachineTemplate"},
		{reason: "the kind of the template does not exist", kind: "RemovedMachineTemplate"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			w := newWorld(t, true)
			md := w.deployment(1, func(md *clusterv1.MachineDeployment) {
				md.Finalizers = []string{clusterv1.MachineDeploymentFinalizer}
				md.Spec.Template.Spec.InfrastructureRef = *object.Reference(infrastructure(tt.kind), "small")
			})
			w.eventually("there is a MachineSet", func() error {
				sets := w.sets()
				if len(sets) != 1 {
					return fmt.Errorf("%d MachineSets", len(sets))
				}
				controllerutil.AddFinalizer(&sets[0], clusterv1.MachineSetFinalizer)
				return w.Update(t.Context(), &sets[0])
			})
			testenv.Must(t, w.Delete(t.Context(), w.build.Template(infrastructure("InMemoryMachineTemplate"), "small")))
			testenv.Must(t, w.Delete(t.Context(), md))
			w.eventually("nothing is left", func() error {
				err := w.Get(t.Context(), client.ObjectKeyFromObject(md), md)
				if n := len(w.machines()) + len(w.sets()); n > 0 || client.IgnoreNotFound(err) != nil || err == nil {
					return fmt.Errorf("%d MachineSets and Machines are left, and the MachineDeployment: %w", n, err)
				}
				return nil
			})
		})
	}
}
