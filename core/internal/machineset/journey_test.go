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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// TestMachines shows what a MachineSet makes, with how many writes.
func TestMachines(t *testing.T) {
	w := newWorld(t)
	set := w.set(2)
	machines := w.settled(set, 2, 0)
	if len(machines) != 2 {
		t.Fatalf("there are %d Machines", len(machines))
	}
	if up := condition.Get(set, clusterv1.ResizedCondition); up == nil || up.Reason != clusterv1.ScalingUpReason || condition.IsTrue(set, clusterv1.ReadyCondition) {
		t.Errorf("a set whose Machines are not ready is scaling up, and not Ready: %+v", set.Status.Conditions)
	}
	m := machines[0]
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineSetNameLabel: "s", "tier": "one"}
	want := clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: m.Name, Labels: labels, Finalizers: []string{clusterv1.MachineFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
		},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: ptr.To("v1.30.0"),
			Bootstrap:         clusterv1.Bootstrap{ConfigRef: &corev1.ObjectReference{APIVersion: bootstrap, Kind: "KubeadmConfig", Namespace: w.namespace, Name: m.Name}},
			InfrastructureRef: corev1.ObjectReference{APIVersion: infrastructure, Kind: "InMemoryMachine", Namespace: w.namespace, Name: m.Name},
		},
	}
	server := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields")
	if diff := cmp.Diff(want, m, server, cmpopts.IgnoreFields(clusterv1.Machine{}, "TypeMeta", "Status")); diff != "" {
		t.Errorf("Machine (-want +got):\n%s", diff)
	}
	for _, ref := range references(&m) {
		obj := w.get(ref)
		if !metav1.IsControlledBy(obj, &m) || obj.GetLabels()["tier"] != "one" || obj.GetLabels()[clusterv1.ClusterNameLabel] != "c" {
			t.Errorf("%s is the Machine's and has its labels: %v", ref.Kind, obj.Object["metadata"])
		}
	}
	if len(set.OwnerReferences) != 1 || set.OwnerReferences[0].Kind != "Cluster" {
		t.Errorf("a set of nobody belongs to the Cluster: %v", set.OwnerReferences)
	}
	for i := range machines {
		w.bringUp(&machines[i])
	}
	w.settled(set, 2, 2)
	got := w.writes.Take()
	for what, most := range map[string]int{
		"PATCH machines by " + fieldManager: 2, "PATCH machinesets": 1, "POST inmemorymachines": 2, "POST kubeadmconfigs": 2,
		"PATCH inmemorymachinetemplates": 1, "PATCH kubeadmconfigtemplates": 1, "PATCH machinesets/status": 4,
	} {
		if got[what] > most {
			t.Errorf("%s happened %d times, %d are enough: %v", what, got[what], most, got)
		}
	}
	if !condition.IsTrue(set, clusterv1.ReadyCondition) || !condition.IsTrue(set, clusterv1.ResizedCondition) {
		t.Errorf("conditions are %+v", set.Status.Conditions)
	}
}

// TestInPlace changes Machines and their objects without replacing them, and what is missing comes back.
func TestInPlace(t *testing.T) {
	w := newWorld(t)
	set := w.set(1)
	before := w.settled(set, 1, 0)[0]
	w.change(set, func() {
		set.Spec.Template.Annotations = map[string]string{"note": "new"}
		set.Spec.Template.Labels["zone"] = "a"
		delete(set.Spec.Template.Labels, "tier")
	})
	for _, ref := range references(&before) {
		w.eventually(ref.Kind+" has it", func() error {
			obj := w.get(ref)
			if _, former := obj.GetLabels()["tier"]; former || obj.GetLabels()["zone"] != "a" || obj.GetAnnotations()["note"] != "new" {
				return fmt.Errorf("it is %v", obj.Object["metadata"])
			}
			return nil
		})
	}
	w.eventually("the Machine has it", func() error {
		m := w.machines()[0]
		if _, former := m.Labels["tier"]; former || m.Labels["zone"] != "a" || m.Annotations["note"] != "new" || m.UID != before.UID {
			return fmt.Errorf("it is %+v", m.ObjectMeta)
		}
		if !slices.Equal(m.Finalizers, before.Finalizers) {
			t.Errorf("finalizers are %v", m.Finalizers)
		}
		return nil
	})

	lost := w.get(&before.Spec.InfrastructureRef)
	if err := w.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.change(set, func() { set.Annotations = map[string]string{"look": "again"} })
	w.eventually("what an interrupted creation left out is made", func() error {
		if now := w.get(&before.Spec.InfrastructureRef); now.GetUID() == lost.GetUID() || now.GetLabels()["zone"] != "a" {
			return fmt.Errorf("it is %v", now.Object["metadata"])
		}
		return nil
	})
}

// TestScale goes down by the policy, and up again under the names that are free.
func TestScale(t *testing.T) {
	w := newWorld(t)
	set := w.set(3)
	machines := w.settled(set, 3, 0)
	w.bringUp(&machines[0])
	w.bringUp(&machines[2])
	w.settled(set, 3, 2)
	w.change(set, func() { set.Spec.Replicas = ptr.To(int32(2)) })
	left := w.settled(set, 2, 2)
	if len(left) != 2 || left[0].Name != machines[0].Name || left[1].Name != machines[2].Name {
		t.Fatalf("the Machine without Node goes first: %v", left)
	}
	w.release()
	w.change(set, func() { set.Spec.Replicas = ptr.To(int32(3)) })
	again := w.settled(set, 3, 2)
	for i := range again {
		if again[i].Name == machines[1].Name {
			t.Errorf("the name %s comes back", again[i].Name)
		}
	}

	// A Machine whose labels somebody changed stays what it is; another one takes its place.
	outcast := &again[1]
	outcast.Labels[clusterv1.MachineSetNameLabel] = "other"
	if err := w.Update(t.Context(), outcast); err != nil {
		t.Fatal(err)
	}
	w.eventually("there are four Machines", func() error {
		if n := len(w.machines()); n != 4 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(outcast), outcast); err != nil || outcast.Labels[clusterv1.MachineSetNameLabel] != "other" {
		t.Errorf("it has the labels it was given: %v, %v", outcast.Labels, err)
	}
}

// TestFrozen makes no Machines while an annotation forbids it.
func TestFrozen(t *testing.T) {
	w := newWorld(t)
	set := w.set(1)
	m := w.settled(set, 1, 0)[0]
	w.change(set, func() { set.Annotations = map[string]string{clusterv1.DisableMachineCreateAnnotation: "true"} })
	if err := w.Delete(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	w.settled(set, 0, 0)
	w.release()
	w.eventually("the set says that a Machine is missing", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := condition.Get(set, clusterv1.ResizedCondition); c == nil || c.Reason != clusterv1.ScalingUpReason || c.Message != "Scaling up MachineSet to 1 replicas (actual 0)" {
			return fmt.Errorf("Resized is %+v", c)
		}
		return nil
	})
	if n := len(w.machines()); n != 0 {
		t.Fatalf("there are %d Machines", n)
	}
	w.change(set, func() { set.Annotations = nil })
	w.settled(set, 1, 0)
}

// TestRemediation replaces a Machine that somebody asked to replace.
func TestRemediation(t *testing.T) {
	w := newWorld(t)
	set := w.set(1)
	sick := w.settled(set, 1, 0)[0]
	before := sick.DeepCopy()
	condition.Set(&sick, condition.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.ConditionSeverityWarning, clusterv1.WaitingForRemediationReason, ""))
	condition.Stamp(&sick, nil, set.CreationTimestamp.Time)
	if err := w.Status().Patch(t.Context(), &sick, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Machine is being deleted and says so", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(&sick), &sick); err != nil {
			return err
		}
		if sick.DeletionTimestamp.IsZero() || !condition.IsTrue(&sick, clusterv1.MachineOwnerRemediatedCondition) {
			return fmt.Errorf("it is %+v", sick)
		}
		return nil
	})
	w.release()
	w.eventually("another one is there", func() error {
		if machines := w.machines(); len(machines) != 1 || machines[0].Name == sick.Name {
			return fmt.Errorf("there are %v, want one of another name", machines)
		}
		return nil
	})
}

// TestAdoption takes Machines of nobody that the selector matches.
func TestAdoption(t *testing.T) {
	w := newWorld(t)
	orphan := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: map[string]string{clusterv1.MachineSetNameLabel: "s", clusterv1.ClusterNameLabel: "c"}},
		Spec: clusterv1.MachineSpec{ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
			InfrastructureRef: corev1.ObjectReference{APIVersion: infrastructure, Kind: "InMemoryMachine", Name: "orphan"}},
	}
	w.make(orphan)
	set := w.set(1)
	machines := w.settled(set, 1, 0)
	if len(machines) != 1 || machines[0].UID != orphan.UID || !metav1.IsControlledBy(&machines[0], set) || machines[0].Spec.Version != nil {
		t.Errorf("the orphan is the only Machine: %+v", machines)
	}
}

// TestMissingTemplate says what is wrong where people look, and goes on once it is mended.
func TestMissingTemplate(t *testing.T) {
	w := newWorld(t)
	if err := w.Delete(t.Context(), w.object(infrastructure, "InMemoryMachineTemplate", "small")); err != nil {
		t.Fatal(err)
	}
	set := w.set(1)
	w.eventually("the MachineSet says what is missing", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
			return err
		}
		if c := condition.Get(set, clusterv1.MachinesCreatedCondition); c == nil || c.Reason != clusterv1.InfrastructureTemplateCloningFailedReason {
			return fmt.Errorf("MachinesCreated is %+v", c)
		}
		return nil
	})
	w.eventually("so does an event", func() error {
		list := &corev1.EventList{}
		if err := w.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.InvolvedObject.UID == set.UID && e.Reason == "ReconcileError" && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "InMemoryMachineTemplate") {
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(list.Items))
	})
	w.make(w.object(infrastructure, "InMemoryMachineTemplate", "small"))
	m := w.settled(set, 1, 0)[0]
	w.get(&m.Spec.InfrastructureRef)
}
