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
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMachinesLosePower checks that machines without power are reported, that no Machine is removed meanwhile, and that they recover.
func TestMachinesLosePower(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("power", w.Class(w.Tools.ProjectTemplate())).ControlPlanes(3).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()
	planes := before.ControlPlane()
	slices.SortFunc(planes, func(a, b clusterv1.Machine) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	oldest, newest := planes[0], planes[len(planes)-1].Name
	worker := before.Workers()[0].Name
	still := c.Always("no Machine is replaced", SameMachines((*Snapshot).Workers, before), SameMachines((*Snapshot).ControlPlane, before))

	c.faults(fmt.Sprintf(`{"deadMachines": [%q, %q]}`, newest, worker))
	c.Eventually("the failure is reported", machineCondition(newest, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown),
		machineCondition(worker, clusterv1.MachineNodeHealthyCondition, corev1.ConditionUnknown),
		machineCondition(newest, controlplanev1.MachineEtcdMemberHealthyCondition, corev1.ConditionFalse),
		machineCondition(newest, controlplanev1.MachineAPIServerPodHealthyCondition, corev1.ConditionUnknown), readyControlPlanes(2))
	c.Eventually("the cause is explained", c.Explains("NodeUnhealthy Machine/"+newest), c.ExplainsAll("NodeUnhealthy Machine/"+worker))
	c.keepsQuorum(&planes[0], &planes[2])
	// Without the annotation, the unhealthy Machine would be deleted first, which is safe.
	c.update(&oldest, func() { metav1.SetMetaDataAnnotation(&oldest.ObjectMeta, clusterv1.DeleteMachineAnnotation, "") })
	c.Change(SetControlPlanes(1))
	c.Eventually("the control plane is not scaled down", func(p *Snapshot) error {
		return controlPlaneCondition(p, controlplanev1.ResizedCondition, controlplanev1.ScalingDownReason, "")
	})
	c.Change(SetControlPlanes(3))
	c.Eventually("the previous size is observed", func(p *Snapshot) error {
		k := &p.ControlPlanes.Items[0]
		if *k.Spec.Replicas != 3 || k.Status.ObservedGeneration != k.Generation {
			return fmt.Errorf("%d replicas, observed generation %d, generation %d", *k.Spec.Replicas, k.Status.ObservedGeneration, k.Generation)
		}
		return nil
	})
	c.faults("")
	c.Eventually("the machines have recovered", Ready, ControlPlanes(3), Workers(1), c.WorkloadMatches)
	still()
	c.Gone()
}

// keepsQuorum checks which Machines of a control plane with three users may delete while one of them is not healthy. Nothing is deleted.
func (c *Subject) keepsQuorum(healthy, unhealthy *clusterv1.Machine) {
	c.t.Helper()
	refused := func(o ...client.DeleteOption) error {
		want := fmt.Sprintf("without the healthy member of Machine %s, 1 of the 2 members that stay would be healthy, and 2 must be. "+
			"The control plane has 3 members (not healthy: %s; being deleted: none)", healthy.Name, unhealthy.Name)
		err := c.Client.Delete(c.t.Context(), healthy, o...)
		if err == nil {
			return fmt.Errorf("healthy Machine %s was deleted, want: %s", healthy.Name, want)
		}
		if !strings.Contains(err.Error(), want) {
			return fmt.Errorf("deletion of healthy Machine %s, want %s: %w", healthy.Name, want, err)
		}
		return nil
	}
	c.Eventually("the manager knows that a Machine is not healthy", func(*Snapshot) error { return refused(client.DryRunAll) })
	testenv.Must(c.t, refused())
	testenv.Must(c.t, c.Client.Delete(c.t.Context(), unhealthy, client.DryRunAll))
	forced := healthy.DeepCopy()
	c.update(forced, func() {
		metav1.SetMetaDataAnnotation(&forced.ObjectMeta, "controlplane.cluster.x-k8s.io/allow-quorum-loss", "")
	})
	testenv.Must(c.t, c.Client.Delete(c.t.Context(), forced, client.DryRunAll))
	c.update(forced, func() { delete(forced.Annotations, "controlplane.cluster.x-k8s.io/allow-quorum-loss") })
}

// TestOnlyControlPlaneMachineIsDeleted checks that a replacement joins before the only control plane Machine is removed.
func TestOnlyControlPlaneMachineIsDeleted(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("only", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	before := c.Snapshot()
	still, healthy := c.Always("workers are not replaced", SameMachines((*Snapshot).Workers, before)), c.NeverBlocked()
	if err := c.Client.Delete(t.Context(), &before.ControlPlane()[0]); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the Machine is replaced", func(p *Snapshot) error {
		if machines := p.ControlPlane(); len(machines) != 1 || machines[0].UID == before.ControlPlane()[0].UID {
			return fmt.Errorf("%d control plane Machines", len(machines))
		}
		return nil
	}, Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches, c.ExplainsNothing)
	still()
	healthy()
	c.Gone()
}

// TestControlPlaneIsLost checks that a control plane without Machines reports that, and does not initialize a second cluster.
func TestControlPlaneIsLost(t *testing.T) {
	t.Parallel()
	w := shared.World(t)
	c := w.Subject(NewCluster("lost", w.Class(w.Tools.ProjectTemplate())).Workers(1).Build())
	c.Eventually("the Cluster becomes ready", Ready, ControlPlanes(1), Workers(1), c.WorkloadMatches)
	snapshot := c.Snapshot()
	machines, plane := snapshot.ControlPlane(), &snapshot.ControlPlanes.Items[0]
	only := machines[0].UID // by value: machines[0] is read again below, while this condition is checked
	still := c.Always("no other Machine is created", func(p *Snapshot) error {
		for _, m := range p.ControlPlane() {
			if m.UID != only {
				return fmt.Errorf("Machine %s was created", m.Name)
			}
		}
		return nil
	})
	// The control plane is paused, and the user removes the hook that waits for the etcd member.
	c.update(plane, func() { metav1.SetMetaDataAnnotation(&plane.ObjectMeta, clusterv1.PausedAnnotation, "") })
	if err := c.Client.Delete(t.Context(), &machines[0]); err != nil {
		t.Fatal(err)
	}
	c.update(&machines[0], func() { delete(machines[0].Annotations, controlplanev1.PreTerminateHookCleanupAnnotation) })
	c.Eventually("the pause is explained", c.Explains("Paused KubeadmControlPlane/"+plane.Name))
	c.Eventually("the Machine is deleted", func(p *Snapshot) error {
		if n := len(p.ControlPlane()); n != 0 {
			return fmt.Errorf("%d control plane Machines", n)
		}
		return nil
	})
	c.update(plane, func() { delete(plane.Annotations, clusterv1.PausedAnnotation) })
	c.Eventually("the control plane reports the loss", func(p *Snapshot) error {
		return controlPlaneCondition(p, controlplanev1.MachinesCreatedCondition, controlplanev1.MachineGenerationFailedReason, "All Machines of the control plane are gone")
	}, c.Explains("MachinesNotCreated KubeadmControlPlane", "All Machines of the control plane are gone"))
	still()
	c.Gone()
}

// faults sets the faults of the simulated cluster.
func (c *Subject) faults(text string) {
	c.t.Helper()
	ref := c.Snapshot().Cluster.Spec.InfrastructureRef
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

// machineCondition is true when a condition of a Machine has a status.
func machineCondition(machine string, kind clusterv1.ConditionType, status corev1.ConditionStatus) Condition {
	return func(p *Snapshot) error {
		for i := range p.Machines.Items {
			m := &p.Machines.Items[i]
			if m.Name != machine {
				continue
			}
			if now := FindCondition(m, kind); now == nil || now.Status != status {
				return fmt.Errorf("condition %s of Machine %s is %+v, want %s", kind, machine, now, status)
			}
			return nil
		}
		return fmt.Errorf("Machine %s does not exist", machine)
	}
}

func readyControlPlanes(n int32) Condition {
	return func(p *Snapshot) error {
		for _, k := range p.ControlPlanes.Items {
			if k.Status.ReadyReplicas != n {
				return fmt.Errorf("%d control plane Machines are ready, want %d", k.Status.ReadyReplicas, n)
			}
		}
		return nil
	}
}

// controlPlaneCondition checks that a condition of the control plane is False with a reason, and a message that contains words.
func controlPlaneCondition(p *Snapshot, kind clusterv1.ConditionType, reason, words string) error {
	if len(p.ControlPlanes.Items) != 1 {
		return errors.New("the KubeadmControlPlane does not exist")
	}
	now := FindCondition(&p.ControlPlanes.Items[0], kind)
	if now == nil || now.Status != corev1.ConditionFalse || now.Reason != reason || !strings.Contains(now.Message, words) {
		return fmt.Errorf("condition %s of the KubeadmControlPlane is %+v, want %s and %q", kind, now, reason, words)
	}
	return nil
}
