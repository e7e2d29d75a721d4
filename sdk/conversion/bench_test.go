package conversion

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// machineAtRest is a Machine as most are stored.
func machineAtRest() *clusterv1beta1.Machine {
	m := &clusterv1beta1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m"}}
	m.Spec = clusterv1beta1.MachineSpec{
		ClusterName: "c", Version: ptr.To("v1.34.0"), ProviderID: ptr.To("in-memory://m"),
		Bootstrap: clusterv1beta1.Bootstrap{DataSecretName: ptr.To("s"), ConfigRef: &corev1.ObjectReference{
			APIVersion: "bootstrap.cluster.x-k8s.io/v1beta1", Kind: "KubeadmConfig", Namespace: "ns", Name: "b"}},
		InfrastructureRef: corev1.ObjectReference{
			APIVersion: "infrastructure.cluster.x-k8s.io/v1beta1", Kind: "DockerMachine", Namespace: "ns", Name: "i"},
	}
	m.Status = clusterv1beta1.MachineStatus{
		NodeRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"}, NodeInfo: &corev1.NodeSystemInfo{OSImage: "o"},
		Phase: "Running", BootstrapReady: true, InfrastructureReady: true, ObservedGeneration: 3,
	}
	for _, name := range []clusterv1beta1.ConditionType{"Ready", "BootstrapReady", "InfrastructureReady", "NodeHealthy"} {
		m.Status.Conditions = append(m.Status.Conditions, clusterv1beta1.Condition{Type: name, Status: "True"})
	}
	return m
}

func BenchmarkMachineToHub(b *testing.B) {
	registry, machine := New(nil), machineAtRest()
	b.ReportAllocs()
	for b.Loop() {
		if err := registry.Convert(b.Context(), machine, &clusterv1.Machine{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMachineFromHub(b *testing.B) {
	registry, hub := New(nil), &clusterv1.Machine{}
	if err := registry.Convert(b.Context(), machineAtRest(), hub); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := registry.Convert(b.Context(), hub, &clusterv1beta1.Machine{}); err != nil {
			b.Fatal(err)
		}
	}
}
