package journey

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Machines that lose their power are seen to, nothing is taken from those that are left, and they come back.
func TestMachinesDie(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("dies", w.Class(w.Tools.ProjectTemplate())).ControlPlanes(3).Workers(1).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(3), Workers(1), c.Agrees)
	before := c.Picture()
	// The oldest would be the first to go anyway, dead or alive.
	newest := slices.MaxFunc(before.ControlPlane(), func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	}).Name
	worker := before.Workers()[0].Name
	still := c.Always("nothing is replaced", SameMachines((*Picture).Workers, before), SameMachines((*Picture).ControlPlane, before))

	c.faults(fmt.Sprintf(`{"deadMachines": [%q, %q]}`, newest, worker))
	c.Eventually("they are missed", is(newest, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown),
		is(worker, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown),
		is(newest, controlplanev1.MachineEtcdMemberHealthyCondition, corev1.ConditionFalse),
		is(newest, controlplanev1.MachineAPIServerPodHealthyCondition, corev1.ConditionUnknown), readyControlPlanes(2))
	c.Change(setControlPlanes(1))
	c.Eventually("the control plane does not shrink by what is left", func(p *Picture) error {
		return controlPlaneIs(p, controlplanev1.ResizedCondition, controlplanev1.ScalingDownReason, "")
	})
	c.Change(setControlPlanes(3))
	c.Eventually("it is to stay as it is", func(p *Picture) error {
		k := &p.ControlPlanes.Items[0]
		if *k.Spec.Replicas != 3 || k.Status.ObservedGeneration != k.Generation {
			return fmt.Errorf("%d Machines are wanted, generation %d of %d", *k.Spec.Replicas, k.Status.ObservedGeneration, k.Generation)
		}
		return nil
	})
	c.faults("")
	c.Eventually("they are back", Ready, ControlPlanes(3), Workers(1), c.Agrees)
	still()
	c.Gone()
}

// Whoever deletes the only Machine of a control plane gets another one first: nothing of the cluster is lost.
func TestOnlyControlPlaneMachineIsDeleted(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("only", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), c.Agrees)
	before := c.Picture()
	still := c.Always("workers stay", SameMachines((*Picture).Workers, before))
	if err := c.Client.Delete(t.Context(), &before.ControlPlane()[0]); err != nil {
		t.Fatal(err)
	}
	c.Eventually("it is replaced", func(p *Picture) error {
		if machines := p.ControlPlane(); len(machines) != 1 || machines[0].UID == before.ControlPlane()[0].UID {
			return fmt.Errorf("there are %d control plane Machines", len(machines))
		}
		return nil
	}, Ready, ControlPlanes(1), Workers(1), c.Agrees)
	still()
	c.Gone()
}

// A control plane that has lost all its Machines says what that means, and begins no second cluster.
func TestControlPlaneIsLost(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("lost", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("it comes up", Ready, ControlPlanes(1), Workers(1), c.Agrees)
	picture := c.Picture()
	machines, plane := picture.ControlPlane(), &picture.ControlPlanes.Items[0]
	still := c.Always("no other Machine is made", func(p *Picture) error {
		for _, m := range p.ControlPlane() {
			if m.UID != machines[0].UID {
				return fmt.Errorf("there is Machine %s", m.Name)
			}
		}
		return nil
	})
	// Nobody looks after the Machine that is deleted, and its user gives up its etcd member by hand.
	c.update(plane, func() { metav1.SetMetaDataAnnotation(&plane.ObjectMeta, clusterv1.PausedAnnotation, "") })
	if err := c.Client.Delete(t.Context(), &machines[0]); err != nil {
		t.Fatal(err)
	}
	c.update(&machines[0], func() { delete(machines[0].Annotations, controlplanev1.PreTerminateHookCleanupAnnotation) })
	c.Eventually("it is gone", func(p *Picture) error {
		if n := len(p.ControlPlane()); n != 0 {
			return fmt.Errorf("there are %d control plane Machines", n)
		}
		return nil
	})
	c.update(plane, func() { delete(plane.Annotations, clusterv1.PausedAnnotation) })
	c.Eventually("the control plane says so", func(p *Picture) error {
		return controlPlaneIs(p, controlplanev1.MachinesCreatedCondition, controlplanev1.MachineGenerationFailedReason, "All Machines of the control plane are gone")
	})
	still()
	c.Gone()
}

// faults says what the simulated cluster is to suffer from.
func (c *Subject) faults(text string) {
	c.t.Helper()
	ref := c.Picture().Cluster.Spec.InfrastructureRef
	infrastructure := &unstructured.Unstructured{}
	infrastructure.SetGroupVersionKind(ref.GroupVersionKind())
	infrastructure.SetNamespace(c.Namespace)
	infrastructure.SetName(ref.Name)
	c.update(infrastructure, func() {
		annotations := infrastructure.GetAnnotations()
		delete(annotations, inmemoryv1.FaultsAnnotation)
		if text != "" {
			annotations[inmemoryv1.FaultsAnnotation] = text
		}
		infrastructure.SetAnnotations(annotations)
	})
}

// is is true when a condition of a Machine has a status.
func is(machine string, kind clusterv1.ConditionType, status corev1.ConditionStatus) Condition {
	return func(p *Picture) error {
		for i := range p.Machines.Items {
			m := &p.Machines.Items[i]
			if m.Name != machine {
				continue
			}
			if now := condition.Get(m, kind); now == nil || now.Status != status {
				return fmt.Errorf("condition %s of Machine %s is %+v, want %s", kind, machine, now, status)
			}
			return nil
		}
		return fmt.Errorf("there is no Machine %s", machine)
	}
}

func readyControlPlanes(n int32) Condition {
	return func(p *Picture) error {
		for _, k := range p.ControlPlanes.Items {
			if k.Status.ReadyReplicas != n {
				return fmt.Errorf("%d control plane Machines are ready, want %d", k.Status.ReadyReplicas, n)
			}
		}
		return nil
	}
}

// controlPlaneIs looks whether a condition of the control plane is False for a reason, with a message that contains words.
func controlPlaneIs(p *Picture, kind clusterv1.ConditionType, reason, words string) error {
	if len(p.ControlPlanes.Items) != 1 {
		return errors.New("there is not one KubeadmControlPlane")
	}
	now := condition.Get(&p.ControlPlanes.Items[0], kind)
	if now == nil || now.Status != corev1.ConditionFalse || now.Reason != reason || !strings.Contains(now.Message, words) {
		return fmt.Errorf("condition %s of the KubeadmControlPlane is %+v, want %s and %q", kind, now, reason, words)
	}
	return nil
}
