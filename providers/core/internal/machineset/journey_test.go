package machineset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestMachines checks the Machines of a MachineSet, and the number of writes.
func TestMachines(t *testing.T) {
	w := newWorld(t, true)
	set := w.set(2)
	machines := w.waitForStatus(set, 2, 0)
	if len(machines) != 2 {
		t.Fatalf("there are %d Machines, want 2", len(machines))
	}
	if up := condition.Get(set, clusterv1.ResizedV1Beta1Condition); up == nil || up.Reason != clusterv1.ScalingUpV1Beta1Reason || condition.IsTrue(set, clusterv1.ReadyV1Beta1Condition) {
		t.Errorf("conditions = %+v; want ScalingUp, and not Ready, before the Machines are ready", set.GetV1Beta1Conditions())
	}
	m := machines[0]
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "s", "tier": "one"}
	want := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: m.Name, Labels: labels, Finalizers: []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "v1.30.0",
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: clusterv1.ContractVersionedObjectReference{APIGroup: "bootstrap.cluster.x-k8s.io", Kind: "KubeadmConfig", Name: m.Name}},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachine", Name: m.Name},
		},
	}
	server := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields")
	if diff := cmp.Diff(want, m, server, cmpopts.IgnoreFields(clusterv1.Machine{}, "TypeMeta", "Status")); diff != "" {
		t.Errorf("Machine (-want +got):\n%s", diff)
	}
	for _, ref := range reference.OfMachine(&m.Spec) {
		obj := w.get(ref)
		if !metav1.IsControlledBy(obj, &m) || obj.GetLabels()["tier"] != "one" || obj.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
			t.Errorf("metadata of %s = %v; want the Machine as controller, and its labels", ref.Kind, obj.Object["metadata"])
		}
	}
	if len(set.OwnerReferences) != 1 || set.OwnerReferences[0].Kind != "Cluster" {
		t.Errorf("owners = %v; want the Cluster, because the set has no controller", set.OwnerReferences)
	}
	for i := range machines {
		w.bringUp(&machines[i])
	}
	w.waitForStatus(set, 2, 2)
	got := w.writes.Take()
	for what, limit := range map[string]int{
		"apply machines by " + fieldManager: 2, "patch machinesets": 1, "create inmemorymachines": 2, "create kubeadmconfigs": 2,
		"patch inmemorymachinetemplates": 1, "patch kubeadmconfigtemplates": 1, "patch machinesets/status": 4,
	} {
		if got[what] > limit {
			t.Errorf("%d times %s, want at most %d: %v", got[what], what, limit, got)
		}
	}
	if !condition.IsTrue(set, clusterv1.ReadyV1Beta1Condition) || !condition.IsTrue(set, clusterv1.ResizedV1Beta1Condition) {
		t.Errorf("conditions = %+v; want Ready and Resized", set.GetV1Beta1Conditions())
	}
}

// TestInPlace changes Machines and their objects without replacing them, and deletes an object, which is created again.
func TestInPlace(t *testing.T) {
	w := newWorld(t, true)
	set := w.set(1)
	before := w.waitForStatus(set, 1, 0)[0]
	w.change(set, func() {
		set.Spec.Template.Annotations = map[string]string{"note": "new"}
		set.Spec.Template.Labels["zone"] = "a"
		delete(set.Spec.Template.Labels, "tier")
	})
	for _, ref := range reference.OfMachine(&before.Spec) {
		w.eventually(ref.Kind+" is updated", func() error {
			obj := w.get(ref)
			if _, removed := obj.GetLabels()["tier"]; removed || obj.GetLabels()["zone"] != "a" || obj.GetAnnotations()["note"] != "new" {
				return fmt.Errorf("metadata = %v", obj.Object["metadata"])
			}
			return nil
		})
	}
	w.eventually("the Machine is updated", func() error {
		m := w.machines()[0]
		if _, removed := m.Labels["tier"]; removed || m.Labels["zone"] != "a" || m.Annotations["note"] != "new" || m.UID != before.UID {
			return fmt.Errorf("metadata = %+v", m.ObjectMeta)
		}
		if !slices.Equal(m.Finalizers, before.Finalizers) {
			t.Errorf("finalizers = %v", m.Finalizers)
		}
		return nil
	})

	lost := w.get(&before.Spec.InfrastructureRef)
	testenv.Must(t, w.Delete(t.Context(), lost))
	w.change(set, func() { set.Annotations = map[string]string{"reconcile": "now"} })
	w.eventually("the missing infrastructure machine is created", func() error {
		if now := w.get(&before.Spec.InfrastructureRef); now.GetUID() == lost.GetUID() || now.GetLabels()["zone"] != "a" {
			return fmt.Errorf("metadata = %v", now.Object["metadata"])
		}
		return nil
	})
}

// TestScale scales down by policy, and up again with new names.
func TestScale(t *testing.T) {
	w := newWorld(t, true)
	set := w.set(3)
	machines := w.waitForStatus(set, 3, 0)
	w.bringUp(&machines[0])
	w.bringUp(&machines[2])
	w.waitForStatus(set, 3, 2)
	w.change(set, func() { set.Spec.Replicas = ptr.To(int32(2)) })
	left := w.waitForStatus(set, 2, 2)
	if len(left) != 2 || left[0].Name != machines[0].Name || left[1].Name != machines[2].Name {
		t.Fatalf("left = %v; want the Machine without Node to be deleted", left)
	}
	w.release()
	w.change(set, func() { set.Spec.Replicas = ptr.To(int32(3)) })
	again := w.waitForStatus(set, 3, 2)
	for i := range again {
		if again[i].Name == machines[1].Name {
			t.Errorf("the name %s is reused", again[i].Name)
		}
	}

	// A Machine whose labels were changed leaves the set and is replaced.
	relabeled := &again[1]
	relabeled.Labels[clusterv1.MachineSetNameLabel] = "other"
	testenv.Must(t, w.Update(t.Context(), relabeled))
	w.eventually("there are four Machines", func() error {
		if n := len(w.machines()); n != 4 {
			return fmt.Errorf("there are %d Machines", n)
		}
		return nil
	})
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(relabeled), relabeled); err != nil || relabeled.Labels[clusterv1.MachineSetNameLabel] != "other" {
		t.Errorf("labels = %v, err = %v; want the changed labels", relabeled.Labels, err)
	}
}

// TestFrozen creates no Machines while an annotation disables it.
func TestFrozen(t *testing.T) {
	w := newWorld(t, true)
	set := w.set(1)
	m := w.waitForStatus(set, 1, 0)[0]
	w.change(set, func() { set.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"} })
	testenv.Must(t, w.Delete(t.Context(), &m))
	w.waitForStatus(set, 0, 0)
	w.release()
	w.eventually("the condition reports a missing Machine", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := condition.Get(set, clusterv1.ResizedV1Beta1Condition); c == nil || c.Reason != clusterv1.ScalingUpV1Beta1Reason || c.Message != "Scaling up MachineSet to 1 replicas (actual 0)" {
			return fmt.Errorf("Resized = %+v", c)
		}
		return nil
	})
	if n := len(w.machines()); n != 0 {
		t.Fatalf("there are %d Machines, want none", n)
	}
	w.change(set, func() { set.Annotations = nil })
	w.waitForStatus(set, 1, 0)
}

// TestRemediation replaces a Machine that is marked for remediation.
func TestRemediation(t *testing.T) {
	w := newWorld(t, true)
	set := w.set(1)
	sick := w.waitForStatus(set, 1, 0)[0]
	before := sick.DeepCopy()
	condition.Set(&sick, condition.False(clusterv1.MachineOwnerRemediatedV1Beta1Condition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationV1Beta1Reason, ""))
	condition.Stamp(&sick, nil, set.CreationTimestamp.Time)
	testenv.Must(t, w.Status().Patch(t.Context(), &sick, client.MergeFrom(before)))
	w.eventually("the Machine is being deleted, and its condition is True", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(&sick), &sick); err != nil {
			return err
		}
		if sick.DeletionTimestamp.IsZero() || !condition.IsTrue(&sick, clusterv1.MachineOwnerRemediatedV1Beta1Condition) {
			return fmt.Errorf("Machine = %+v", sick)
		}
		return nil
	})
	w.release()
	w.eventually("another Machine replaces it", func() error {
		if machines := w.machines(); len(machines) != 1 || machines[0].Name == sick.Name {
			return fmt.Errorf("Machines = %v, want one with another name", machines)
		}
		return nil
	})
}

// TestNoAdoptionFromOtherClusters leaves a Machine of another Cluster alone, although the selector matches it.
func TestNoAdoptionFromOtherClusters(t *testing.T) {
	w := newWorld(t, true)
	foreign := w.orphan("foreign", func(m *clusterv1.Machine) {
		m.Labels[clusterv1.ClusterNameLabel], m.Spec.ClusterName = "other", "other"
	})
	w.waitForStatus(w.set(1), 1, 0)
	testenv.Must(t, w.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	if owner := metav1.GetControllerOf(foreign); owner != nil {
		t.Errorf("the Machine of Cluster other belongs to %s %s now", owner.Kind, owner.Name)
	}
}

// TestAdoption adopts an orphan that the selector matches.
func TestAdoption(t *testing.T) {
	w := newWorld(t, true)
	orphan := w.orphan("orphan")
	set := w.set(1)
	machines := w.waitForStatus(set, 1, 0)
	if len(machines) != 1 || machines[0].UID != orphan.UID || !metav1.IsControlledBy(&machines[0], set) || machines[0].Spec.Version != "" {
		t.Errorf("Machines = %+v; want only the adopted orphan", machines)
	}
}

// TestMissingTemplate reports a missing template in a condition and an event, and continues once it exists.
func TestMissingTemplate(t *testing.T) {
	w := newWorld(t, true)
	testenv.Must(t, w.Delete(t.Context(), w.build.Template(infrastructure("InMemoryMachineTemplate"), "small")))
	set := w.set(1)
	w.eventually("the condition reports the missing template", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := condition.Get(set, clusterv1.MachinesCreatedV1Beta1Condition); c == nil || c.Reason != clusterv1.InfrastructureTemplateCloningFailedV1Beta1Reason {
			return fmt.Errorf("MachinesCreated = %+v", c)
		}
		return nil
	})
	w.eventually("an event reports the missing template", func() error {
		list := &corev1.EventList{}
		if err := w.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.InvolvedObject.UID == set.UID && e.Reason == "ReconcileError" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "InMemoryMachineTemplate") {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})
	w.create(w.build.Template(infrastructure("InMemoryMachineTemplate"), "small"))
	m := w.waitForStatus(set, 1, 0)[0]
	w.get(&m.Spec.InfrastructureRef)
}
