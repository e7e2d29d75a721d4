package controlplane

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/internal/kubeadm"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

// change changes the spec of the control plane.
func (j *journey) change(edit func(*controlplanev1.KubeadmControlPlaneSpec)) {
	j.Helper()
	kcp := j.kcp()
	before := kcp.DeepCopy()
	edit(&kcp.Spec)
	j.must(j.Patch(j.Context(), kcp, client.MergeFrom(before)))
}

// awaitRollout acts as the Machine controller until the control plane is up to date and ready. It returns the largest and
// smallest numbers of Machines on the way.
func (j *journey) awaitRollout(replicas int32, done func(clusterv1.Machine) bool) (most, least int) {
	j.Helper()
	least = 100
	j.eventually("the control plane being up to date and ready", func() (bool, string) {
		machines := j.machines()
		most, least = max(most, len(machines)), min(least, len(machines))
		j.bootAll()
		j.finishDeletions()
		kcp := j.kcp()
		return int32(len(machines)) == replicas && !slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return !done(m) }) &&
			kcp.GetV1Beta1Status().ReadyReplicas == replicas && kcp.GetV1Beta1Status().UpdatedReplicas == replicas && condition.IsTrue(kcp, clusterv1.ReadyV1Beta1Condition), "it is not"
	})
	return most, least
}

func anyMachine(clusterv1.Machine) bool { return true }

func atVersion(v string) func(clusterv1.Machine) bool {
	return func(m clusterv1.Machine) bool { return m.Spec.Version == v }
}

func TestScaleUpAndDown(t *testing.T) {
	j := newJourney(t)
	j.apply(3)
	if most, _ := j.awaitRollout(3, anyMachine); most > 3 {
		t.Errorf("there were %d Machines on the way to 3", most)
	}
	joined := 0
	for _, m := range j.machines() {
		config := &bootstrapv1.KubeadmConfig{}
		j.must(j.Get(t.Context(), client.ObjectKeyFromObject(&m), config))
		if kubeadm.Defined(config.Spec.JoinConfiguration) && !kubeadm.Defined(config.Spec.ClusterConfiguration) && !kubeadm.Defined(config.Spec.InitConfiguration) {
			joined++
		}
	}
	if joined != 2 {
		t.Errorf("%d Machines join, want 2: exactly one initializes", joined)
	}
	oldest := j.machines()[0].Name
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) { *s.Replicas = 1 })
	j.awaitRollout(1, anyMachine)
	var removed []string
	for _, action := range j.workload.Actions() {
		if name, ok := strings.CutPrefix(action, "remove "); ok {
			removed = append(removed, name)
		}
	}
	if len(removed) != 2 || removed[0] != oldest {
		t.Errorf("removed etcd members %v, want two, the oldest %s first", removed, oldest)
	}
}

func TestRolloutOfANewVersion(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.awaitRollout(1, anyMachine)
	old := j.machines()[0].Name
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) { s.Version = "v1.31.0" })
	if most, least := j.awaitRollout(1, atVersion("v1.31.0")); most != 2 || least != 1 {
		t.Errorf("there were %d to %d Machines on the way, want 1 to 2", least, most)
	}
	if kcp := j.kcp(); kcp.Status.Version != "v1.31.0" || !condition.IsTrue(kcp, controlplanev1.MachinesSpecUpToDateV1Beta1Condition) {
		t.Errorf("status after the rollout: %+v", kcp.Status)
	}
	// An action may be repeated because of a stale cache, without an effect.
	var got []string
	for _, a := range j.workload.Actions() {
		if !slices.Contains(got, a) && a != "maintain v1.30.0" {
			got = append(got, a)
		}
	}
	want := []string{"prepare v1.31.0", "lead " + j.machines()[0].Name, "remove " + old, "maintain v1.31.0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions in the workload cluster (-want +got):\n%s", diff)
	}
}

func TestRolloutWithoutSurge(t *testing.T) {
	j := newJourney(t)
	j.apply(3)
	j.awaitRollout(3, anyMachine)
	zero := intstr.FromInt32(0)
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.Version = "v1.31.0"
		s.Rollout.Strategy.Type, s.Rollout.Strategy.RollingUpdate.MaxSurge = controlplanev1.RollingUpdateStrategyType, &zero
	})
	if most, least := j.awaitRollout(3, atVersion("v1.31.0")); most > 3 || least < 2 {
		t.Errorf("there were %d to %d Machines on the way, want 2 to 3", least, most)
	}
}

func TestScaleDownWaitsForAQuorum(t *testing.T) {
	j := newJourney(t)
	j.apply(3)
	j.awaitRollout(3, anyMachine)
	// The unhealthy Machine would go first if no other were marked.
	marked, broken := j.machines()[0], j.machines()[2].Name
	base := marked.DeepCopy()
	metav1.SetMetaDataAnnotation(&marked.ObjectMeta, clusterv1.DeleteMachineAnnotation, "")
	j.must(j.Patch(t.Context(), &marked, client.MergeFrom(base)))
	j.workload.Mu.Lock()
	j.workload.Members[broken] = false
	j.workload.Mu.Unlock()
	j.workload.Changed()
	j.eventually("the member being reported", func() (bool, string) {
		return condition.IsFalse(j.kcp(), controlplanev1.EtcdClusterHealthyV1Beta1Condition), "it is not"
	})
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) { *s.Replicas = 1 })
	j.eventually("the change being observed", func() (bool, string) {
		return j.kcp().Status.ObservedGeneration == 2, "it is not"
	})
	j.eventually("an event with the reason", func() (bool, string) {
		events := &corev1.EventList{}
		j.must(j.List(t.Context(), events, client.InNamespace(j.ns)))
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.Reason == "ControlPlaneUnhealthy" && strings.Contains(e.Message, broken)
		}), "there is none"
	})
	if got := j.workload.Actions(); slices.ContainsFunc(got, func(a string) bool { return strings.HasPrefix(a, "remove") }) {
		t.Errorf("a member was removed while another one is unhealthy: %v", got)
	}
	if machines := j.machines(); slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return m.DeletionTimestamp != nil }) {
		t.Error("a Machine is deleted while another one is unhealthy")
	}
}

func TestInPlaceChangesAndTheirRemoval(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.awaitRollout(1, anyMachine)
	m := j.machines()[0]
	foreign := m.DeepCopy()
	foreign.Labels["mine"] = "stays"
	foreign.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](77)
	j.must(j.Patch(t.Context(), foreign, client.MergeFrom(&m), client.FieldOwner("another")))
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.MachineTemplate.ObjectMeta.Labels = map[string]string{"color": "blue"}
		s.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](60)
	})
	want := map[string]string{
		"color": "blue", "mine": "stays", clusterv1.ClusterNameLabel: "c",
		clusterv1.MachineControlPlaneLabel: "", clusterv1.MachineControlPlaneNameLabel: "cp",
	}
	j.eventually("labels and timeout in place", func() (bool, string) {
		now := j.machines()[0]
		return cmp.Equal(want, now.Labels) && now.Spec.Deletion.NodeDrainTimeoutSeconds != nil && now.UID == m.UID, cmp.Diff(want, now.Labels)
	})
	if got := j.machines()[0].Spec.Deletion.NodeDeletionTimeoutSeconds; ptr.Deref(got, 0) != 77 {
		t.Errorf("a timeout that is not in the template changed to %v", got)
	}
	delete(want, "mine")
	config := &bootstrapv1.KubeadmConfig{}
	j.must(j.Get(t.Context(), client.ObjectKeyFromObject(&m), config))
	if diff := cmp.Diff(want, config.Labels); diff != "" {
		t.Errorf("labels of the KubeadmConfig (-want +got):\n%s", diff)
	}
	j.change(func(s *controlplanev1.KubeadmControlPlaneSpec) {
		s.MachineTemplate.Spec.Deletion.NodeDrainTimeoutSeconds = nil
	})
	j.eventually("the timeout being removed", func() (bool, string) {
		now := j.machines()[0]
		return now.Spec.Deletion.NodeDrainTimeoutSeconds == nil && now.UID == m.UID, "it is not"
	})
}

func TestDeletionWaitsForWorkers(t *testing.T) {
	j := newJourney(t)
	j.apply(1)
	j.awaitRollout(1, anyMachine)
	worker := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: j.ns, Name: "worker"},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("worker")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{
				APIGroup: "infrastructure.cluster.x-k8s.io", Kind: "InMemoryMachine", Name: "worker",
			},
		},
	}
	j.must(j.Create(t.Context(), worker))
	j.must(j.Delete(t.Context(), j.kcp()))
	j.eventually("the deletion being reported", func() (bool, string) {
		c := condition.Get(j.kcp(), controlplanev1.ResizedV1Beta1Condition)
		return c != nil && c.Reason == clusterv1.DeletingV1Beta1Reason, "it is not"
	})
	for _, m := range j.machines() {
		if m.Name != "worker" && m.DeletionTimestamp != nil {
			t.Error("a control plane Machine is deleted before the last worker")
		}
	}
	j.must(j.Delete(t.Context(), worker))
	j.eventually("the control plane being deleted", func() (bool, string) {
		j.finishDeletions()
		return j.kcp().UID == "", "it exists"
	})
}
