package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

func TestSelection(t *testing.T) {
	cluster := func(b dockerv1.DevClusterBackendSpec) *dockerv1.DevCluster {
		return &dockerv1.DevCluster{Spec: dockerv1.DevClusterSpec{Backend: b}}
	}
	machine := func(b dockerv1.DevMachineBackendSpec) *dockerv1.DevMachine {
		return &dockerv1.DevMachine{Spec: dockerv1.DevMachineSpec{Backend: b}}
	}
	containers, simulated := &dockerv1.DockerClusterBackendSpec{}, &dockerv1.InMemoryClusterBackendSpec{}
	container, simulation := &dockerv1.DockerMachineBackendSpec{}, &dockerv1.InMemoryMachineBackendSpec{}
	tests := []struct {
		reason string
		set    Set
		obj    client.Object
		want   string
	}{
		{"a DockerCluster", Docker(), &dockerv1.DockerCluster{}, "cluster"},
		{"a DockerMachine", Docker(), &dockerv1.DockerMachine{}, "machine"},
		{"a DevCluster is of the other set", Docker(), cluster(dockerv1.DevClusterBackendSpec{Docker: containers}), ""},
		{"a DevCluster", Dev(), cluster(dockerv1.DevClusterBackendSpec{Docker: containers}), "cluster"},
		{"a simulated DevCluster", Dev(), cluster(dockerv1.DevClusterBackendSpec{InMemory: simulated}), ""},
		{"a DevCluster without a backend", Dev(), cluster(dockerv1.DevClusterBackendSpec{}), ""},
		{"a DevCluster with two", Dev(), cluster(dockerv1.DevClusterBackendSpec{Docker: containers, InMemory: simulated}), ""},
		{"a DevMachine", Dev(), machine(dockerv1.DevMachineBackendSpec{Docker: container}), "machine"},
		{"a simulated DevMachine", Dev(), machine(dockerv1.DevMachineBackendSpec{InMemory: simulation}), ""},
		{"a DevMachine with two backends", Dev(), machine(dockerv1.DevMachineBackendSpec{Docker: container, InMemory: simulation}), ""},
		{"a DockerMachine is of the other set", Dev(), &dockerv1.DockerMachine{}, ""},
		{"another object", Dev(), &corev1.Pod{}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got := ""
			if _, ok := tc.set.ClusterOf(tc.obj); ok {
				got += "cluster"
			}
			if _, ok := tc.set.MachineOf(tc.obj); ok {
				got += "machine"
			}
			if got != tc.want {
				t.Errorf("it is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestWrites checks that what is set in the parts is set in the object.
func TestWrites(t *testing.T) {
	addresses := []clusterv1.MachineAddress{{Type: clusterv1.MachineHostName, Address: "h"}}
	domains := []clusterv1.FailureDomain{{Name: "a"}}
	endpoint, done := clusterv1.APIEndpoint{Host: "h", Port: 1}, dockerv1.InitializationStatus{Provisioned: ptr.To(true)}
	labels := metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}
	write := func(set Set, obj step.Object) {
		if c, ok := set.ClusterOf(obj); ok {
			c.Labels, *c.Endpoint, *c.Initialization, *c.FailureDomains = labels.Labels, endpoint, done, domains
		}
		if m, ok := set.MachineOf(obj); ok {
			m.Labels, *m.ProviderID, *m.Initialization, *m.Addresses = labels.Labels, "p", done, addresses
		}
	}
	dockerCluster, dockerMachine := &dockerv1.DockerCluster{}, &dockerv1.DockerMachine{}
	devCluster, devMachine := &dockerv1.DevCluster{}, &dockerv1.DevMachine{}
	devCluster.Spec.Backend.Docker, devMachine.Spec.Backend.Docker = &dockerv1.DockerClusterBackendSpec{}, &dockerv1.DockerMachineBackendSpec{}
	for _, obj := range []step.Object{dockerCluster, dockerMachine} {
		write(Docker(), obj)
	}
	for _, obj := range []step.Object{devCluster, devMachine} {
		write(Dev(), obj)
	}
	clusterStatus := dockerv1.DockerClusterStatus{Initialization: done, FailureDomains: domains}
	machineStatus := dockerv1.DockerMachineStatus{Initialization: done, Addresses: addresses}
	for reason, diff := range map[string]string{
		"DockerCluster": cmp.Diff(&dockerv1.DockerCluster{
			ObjectMeta: labels, Spec: dockerv1.DockerClusterSpec{ControlPlaneEndpoint: endpoint}, Status: clusterStatus,
		}, dockerCluster),
		"DockerMachine": cmp.Diff(&dockerv1.DockerMachine{
			ObjectMeta: labels, Spec: dockerv1.DockerMachineSpec{ProviderID: "p"}, Status: machineStatus,
		}, dockerMachine),
		"DevCluster": cmp.Diff(&dockerv1.DevCluster{
			ObjectMeta: labels, Spec: dockerv1.DevClusterSpec{ControlPlaneEndpoint: endpoint, Backend: devCluster.Spec.Backend},
			Status: dockerv1.DevClusterStatus{Initialization: done, FailureDomains: domains},
		}, devCluster),
		"DevMachine": cmp.Diff(&dockerv1.DevMachine{
			ObjectMeta: labels, Spec: dockerv1.DevMachineSpec{ProviderID: "p", Backend: devMachine.Spec.Backend},
			Status: dockerv1.DevMachineStatus{Initialization: done, Addresses: addresses},
		}, devMachine),
	} {
		if diff != "" {
			t.Errorf("%s, -want +got:\n%s", reason, diff)
		}
	}
}
