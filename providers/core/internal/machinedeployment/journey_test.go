package machinedeployment

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// TestFirstMachineSet checks the MachineSet of a new MachineDeployment, and the number of writes.
func TestFirstMachineSet(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(2, func(md *clusterv1.MachineDeployment) {
		md.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
		md.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(0))
		md.Spec.Template.Annotations = map[string]string{"note": "machine"}
	})
	w.eventuallyIs(md, "Running 2/2/2/2/0, r1 v1.30.0 2/2")
	set := w.sets()[0]
	hash := set.Labels[clusterv1.MachineDeploymentUniqueLabel]
	labels := map[string]string{
		"tier": "one", clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineDeploymentUniqueLabel: hash,
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{
		clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md", clusterv1.MachineDeploymentUniqueLabel: hash,
	}}
	template := *md.Spec.Template.DeepCopy()
	template.Labels, template.Spec.MinReadySeconds = labels, nil
	want := clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: "md-" + hash[len(hash)-5:], Labels: labels,
			Annotations: map[string]string{
				"own": "annotation", clusterv1.RevisionAnnotation: "1", clusterv1.DesiredReplicasAnnotation: "2", clusterv1.MaxReplicasAnnotation: "3",
			},
			Finalizers:      []string{clusterv1.MachineSetTopologyFinalizer},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(md, clusterv1.GroupVersion.WithKind("MachineDeployment"))},
		},
		Spec: clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Deletion: clusterv1.MachineSetDeletionSpec{Order: "Random"}, Selector: selector, Template: template},
	}
	server := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "UID", "ResourceVersion", "Generation", "CreationTimestamp", "ManagedFields")
	if diff := cmp.Diff(want, set, server, cmpopts.IgnoreFields(clusterv1.MachineSet{}, "TypeMeta", "Status")); diff != "" {
		t.Errorf("MachineSet (-want +got):\n%s", diff)
	}
	if md.Annotations[clusterv1.RevisionAnnotation] != "1" || len(md.OwnerReferences) != 1 || md.Labels[clusterv1.ClusterNameLabel] != "c" {
		t.Errorf("MachineDeployment = %+v; want revision, owner and label", md.ObjectMeta)
	}
	got := w.requests.Take()
	status := got["patch machinedeployments/status"]
	if status > 5 {
		t.Errorf("the status was written %d times, want at most 5", status)
	}
	if got["apply machinesets by "+fieldManager] != 1 || got["patch machinedeployments"] != 1 {
		t.Errorf("writes = %v; want one of each object", got)
	}
}

// TestInPlace changes fields that do not lead to new Machines.
func TestInPlace(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1)
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	w.requests.Take()
	w.change(md, func() {
		delete(md.Spec.Template.Labels, "tier")
		md.Spec.Template.Labels["node.cluster.x-k8s.io/zone"] = "a"
		md.Spec.Template.Annotations = map[string]string{"note": "new"}
		md.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(int32(60))
		md.Spec.Template.Spec.MinReadySeconds = ptr.To(int32(1))
		md.Spec.Deletion.Order = clusterv1.OldestMachineSetDeletionOrder
		delete(md.Annotations, "own")
	})
	w.eventually("the Machine is updated", func() error {
		machines := w.machines()
		if len(machines) != 1 {
			return fmt.Errorf("there are %d Machines, want 1", len(machines))
		}
		m := machines[0]
		_, removed := m.Labels["tier"]
		if removed || m.Labels["node.cluster.x-k8s.io/zone"] != "a" || m.Annotations["note"] != "new" || m.Spec.Deletion.NodeDrainTimeoutSeconds == nil {
			return fmt.Errorf("the Machine is %+v", m)
		}
		return nil
	})
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	set := w.sets()[0]
	_, removed := set.Labels["tier"]
	_, own := set.Annotations["own"]
	if removed || own || set.Spec.Deletion.Order != "Oldest" || ptr.Deref(set.Spec.Template.Spec.MinReadySeconds, 0) != 1 {
		t.Errorf("the MachineSet is %+v", set)
	}
	if got := w.requests.Take(); got["apply machinesets by "+fieldManager] != 1 {
		t.Errorf("writes = %v; want one of the MachineSet", got)
	}
}

// TestRollouts rolls out several templates and returns to a previous one.
func TestRollouts(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(3)
	w.eventuallyIs(md, "Running 3/3/3/3/0, r1 v1.30.0 3/3")
	first := w.sets()[0].Name

	w.requests.Take()
	w.change(md, version(md, "v1.30.1"))
	w.eventuallyIs(md, "Running 3/3/3/3/0, r1 v1.30.0 0/0, r2 v1.30.1 3/3")
	got := w.requests.Take()
	t.Logf("writes: %v", got)
	// The new set is created with one replica and scaled up twice, the old one is scaled down three times.
	if got["apply machinesets by "+fieldManager] != 6 || got["patch machinedeployments"] != 1 {
		t.Errorf("writes of a rollout of three Machines = %v", got)
	}
	w.change(md, version(md, "v1.30.2"))
	w.eventuallyIs(md, "Running 3/3/3/3/0, r2 v1.30.1 0/0, r3 v1.30.2 3/3")
	for _, set := range w.sets() {
		if set.Name == first {
			t.Errorf("%s still exists, beyond the history limit", first)
		}
	}

	second := w.sets()[0]
	w.change(md, version(md, "v1.30.1"))
	w.eventuallyIs(md, "Running 3/3/3/3/0, r3 v1.30.2 0/0, r4 v1.30.1 3/3")
	reused := w.sets()[1]
	if reused.UID != second.UID || reused.Annotations[clusterv1.RevisionHistoryAnnotation] != "2" {
		t.Errorf("reused set = %+v; want the previous set with its revision in the history", reused.ObjectMeta)
	}
	if md.Annotations[clusterv1.RevisionAnnotation] != "4" {
		t.Errorf("annotations = %v; want revision 4", md.Annotations)
	}

	// A broken template stops the rollout, and reverting the template completes it.
	w.change(md, version(md, brokenVersion))
	w.eventuallyIs(md, "Running 4/1/3/3/1, r3 v1.30.2 0/0, r4 v1.30.1 3/3, r5 v1.29.13 1/1")
	w.change(md, version(md, "v1.30.1"))
	w.eventuallyIs(md, "Running 3/3/3/3/0, r5 v1.29.13 0/0, r6 v1.30.1 3/3")
}

// TestRolloutAfter replaces Machines without a change of the template.
func TestRolloutAfter(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1)
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	created := w.sets()[0].CreationTimestamp
	after := metav1.NewTime(created.Add(time.Second)) // the API has times in seconds
	w.change(md, func() { md.Spec.Rollout.After = after })
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 0/0, r2 v1.30.0 1/1")
}

// TestOnDelete replaces Machines after they are deleted.
func TestOnDelete(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(2, func(md *clusterv1.MachineDeployment) {
		md.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	w.eventuallyIs(md, "Running 2/2/2/2/0, r1 v1.30.0 2/2")
	w.change(md, version(md, "v1.30.1"))
	w.eventuallyIs(md, "Running 2/0/2/2/0, r1 v1.30.0 2/2 frozen, r2 v1.30.1 0/0")
	for _, want := range []string{
		"Running 2/1/2/2/0, r1 v1.30.0 1/1 frozen, r2 v1.30.1 1/1",
		"Running 2/2/2/2/0, r1 v1.30.0 0/0 frozen, r2 v1.30.1 2/2",
	} {
		w.deleteMachine("v1.30.0")
		w.eventuallyIs(md, want)
	}
	w.change(md, version(md, "v1.30.0"))
	w.eventuallyIs(md, "Running 2/0/2/2/0, r2 v1.30.1 2/2 frozen, r3 v1.30.0 0/0")
}

func (w *world) deleteMachine(version string) {
	w.Helper()
	for _, m := range w.machines() {
		if m.Spec.Version == version && m.DeletionTimestamp.IsZero() {
			testenv.Must(w, w.Delete(w.Context(), &m))
			return
		}
	}
	w.Fatalf("no Machine has version %s", version)
}

// TestPaused scales without rolling out.
func TestPaused(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1)
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	w.change(md, func() {
		md.Spec.Paused, md.Spec.Replicas = ptr.To(true), ptr.To(int32(2))
		md.Spec.Template.Spec.Version = "v1.30.1"
		md.Spec.Template.Spec.InfrastructureRef.Name = "large"
	})
	w.eventuallyIs(md, "Running 2/0/2/2/0, r1 v1.30.0 2/2")
	template := &metav1.PartialObjectMetadata{}
	template.SetGroupVersionKind(infrastructure("InMemoryMachineTemplate"))
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "large"}, template); err != nil || len(template.OwnerReferences) != 1 {
		t.Errorf("owners = %v, err = %v; want the Cluster to own the template of a paused rollout", template.OwnerReferences, err)
	}
	w.change(md, func() { md.Spec.Paused = ptr.To(false) })
	w.eventuallyIs(md, "Running 2/2/2/2/0, r1 v1.30.0 0/0, r2 v1.30.1 2/2")
}

// TestAdoption adopts a matching MachineSet with its Machines.
func TestAdoption(t *testing.T) {
	w := newWorld(t, true)
	labels := map[string]string{clusterv1.ClusterNameLabel: "c", clusterv1.MachineDeploymentNameLabel: "md"}
	orphan := &clusterv1.MachineSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "orphan", Labels: labels},
		Spec: clusterv1.MachineSetSpec{ClusterName: "c", Replicas: ptr.To(int32(2)), Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: clusterv1.MachineTemplateSpec{ObjectMeta: clusterv1.ObjectMeta{Labels: labels}, Spec: clusterv1.MachineSpec{
				ClusterName: "c", Version: "v1.30.0", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
				InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachineTemplate", Name: "small"},
			}}},
	}
	w.create(orphan)
	md := w.deployment(2)
	w.eventuallyIs(md, "Running 2/2/2/2/0, r1 v1.30.0 2/2")
	sets := w.sets()
	if len(sets) != 1 || sets[0].UID != orphan.UID || !metav1.IsControlledBy(&sets[0], md) || sets[0].Labels["tier"] != "one" {
		t.Errorf("sets = %+v; want the adopted orphan", sets)
	}
}

// TestDeletedMachineSet creates a set under another name while the previous one is being deleted.
func TestDeletedMachineSet(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1, func(md *clusterv1.MachineDeployment) {
		md.Labels = map[string]string{clusterv1.ClusterTopologyOwnedLabel: ""}
	})
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
	old := w.sets()[0]
	if err := w.Delete(t.Context(), &old); err != nil { // its finalizer keeps it
		t.Fatal(err)
	}
	w.eventually("another set replaces it", func() error {
		sets := w.sets()
		if len(sets) != 2 || ptr.Deref(md.GetV1Beta1Status().AvailableReplicas, 0) != 1 {
			return fmt.Errorf("there are %d sets, want 2", len(sets))
		}
		for _, set := range sets {
			if set.UID != old.UID && ptr.Deref(set.GetV1Beta1Status().AvailableReplicas, 0) == 1 {
				return nil
			}
		}
		return fmt.Errorf("no new set is available: %+v", sets)
	})
}

// TestClusterCreatedLater waits for a Cluster that is created later.
func TestClusterCreatedLater(t *testing.T) {
	w := newWorld(t, true)
	md := w.deployment(1, func(md *clusterv1.MachineDeployment) {
		md.Spec.ClusterName, md.Spec.Template.Spec.ClusterName = "later", "later"
		md.Labels = map[string]string{clusterv1.ClusterNameLabel: "later"}
		md.Spec.Selector.MatchLabels = map[string]string{clusterv1.MachineDeploymentNameLabel: "md"}
	})
	w.eventually("the MachineDeployment waits without an error", func() error {
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(md), md); err != nil || md.Status.ObservedGeneration == md.Generation {
			return err
		}
		return fmt.Errorf("generation %d was observed", md.Status.ObservedGeneration)
	})
	w.create(object.Builder{Namespace: w.namespace, ClusterName: "later"}.Cluster())
	w.eventuallyIs(md, "Running 1/1/1/1/0, r1 v1.30.0 1/1")
}
