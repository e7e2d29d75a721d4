package kinds

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
)

func devClusterOf(b dockerv1.DevClusterBackendSpec) *dockerv1.DevCluster {
	return &dockerv1.DevCluster{Spec: dockerv1.DevClusterSpec{Backend: b}}
}

func devMachineOf(b dockerv1.DevMachineBackendSpec) *dockerv1.DevMachine {
	return &dockerv1.DevMachine{Spec: dockerv1.DevMachineSpec{Backend: b}}
}

func TestSelection(t *testing.T) {
	containers, simulated := &dockerv1.DockerClusterBackendSpec{}, &dockerv1.InMemoryClusterBackendSpec{}
	container, simulation := &dockerv1.DockerMachineBackendSpec{}, &dockerv1.InMemoryMachineBackendSpec{}
	tests := []struct {
		reason string
		set    Set
		obj    client.Object
		want   string
	}{
		{"an InMemoryCluster", InMemory(), &inmemoryv1.InMemoryCluster{}, "cluster"},
		{"an InMemoryMachine", InMemory(), &inmemoryv1.InMemoryMachine{}, "machine"},
		{"a DevCluster is of the other set", InMemory(), devClusterOf(dockerv1.DevClusterBackendSpec{InMemory: simulated}), ""},
		{"a DevCluster", Dev(), devClusterOf(dockerv1.DevClusterBackendSpec{InMemory: simulated}), "cluster"},
		{"a DevCluster of containers", Dev(), devClusterOf(dockerv1.DevClusterBackendSpec{Docker: containers}), ""},
		{"a DevCluster without a backend", Dev(), devClusterOf(dockerv1.DevClusterBackendSpec{}), ""},
		{"a DevCluster with two", Dev(), devClusterOf(dockerv1.DevClusterBackendSpec{Docker: containers, InMemory: simulated}), ""},
		{"a DevMachine", Dev(), devMachineOf(dockerv1.DevMachineBackendSpec{InMemory: simulation}), "machine"},
		{"a container", Dev(), devMachineOf(dockerv1.DevMachineBackendSpec{Docker: container}), ""},
		{"a DevMachine with two backends", Dev(), devMachineOf(dockerv1.DevMachineBackendSpec{Docker: container, InMemory: simulation}), ""},
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

// TestWrites checks what is written into Dev objects; tests of the controllers check that for the others.
func TestWrites(t *testing.T) {
	infra := devClusterOf(dockerv1.DevClusterBackendSpec{InMemory: &dockerv1.InMemoryClusterBackendSpec{}})
	c, _ := Dev().ClusterOf(infra)
	c.SetEndpoint("h", 20001)
	c.SetReady()
	if host, port := c.Endpoint(); host != "h" || port != 20001 || infra.Spec.ControlPlaneEndpoint.Port != 20001 || !c.Ready() ||
		!ptr.Deref(infra.Status.Initialization.Provisioned, false) || c.RecordedPort() != 0 || c.HostedControlPlane() != nil {
		t.Errorf("spec %+v, status %+v", infra.Spec, infra.Status)
	}
	obj := devMachineOf(dockerv1.DevMachineBackendSpec{InMemory: &dockerv1.InMemoryMachineBackendSpec{}})
	m, _ := Dev().MachineOf(obj)
	m.SetProviderID("p")
	m.SetReady()
	if m.ProviderID() != "p" || obj.Spec.ProviderID != "p" || !m.Ready() || !ptr.Deref(obj.Status.Initialization.Provisioned, false) {
		t.Errorf("spec %+v, status %+v", obj.Spec, obj.Status)
	}
}

func TestBehaviourOf(t *testing.T) {
	in := func(seconds int) dockerv1.CommonProvisioningSettings {
		return dockerv1.CommonProvisioningSettings{
			StartupDuration: metav1.Duration{Duration: time.Duration(seconds) * time.Second}, StartupJitter: "0.2",
		}
	}
	out := func(seconds int) inmemoryv1.CommonProvisioningSettings {
		return inmemoryv1.CommonProvisioningSettings(in(seconds))
	}
	tests := []struct {
		reason  string
		backend *dockerv1.InMemoryMachineBackendSpec
		want    *inmemoryv1.InMemoryMachineBehaviour
	}{
		{reason: "no backend"},
		{reason: "everything starts immediately", backend: &dockerv1.InMemoryMachineBackendSpec{}, want: &inmemoryv1.InMemoryMachineBehaviour{}},
		{
			reason: "all parts",
			backend: &dockerv1.InMemoryMachineBackendSpec{
				VM: &dockerv1.InMemoryVM{Provisioning: in(1)}, Node: &dockerv1.InMemoryNode{Provisioning: in(2)},
				APIServer: &dockerv1.InMemoryAPIServer{Provisioning: in(3)}, Etcd: &dockerv1.InMemoryEtcd{Provisioning: in(4)},
			},
			want: &inmemoryv1.InMemoryMachineBehaviour{
				VM: &inmemoryv1.InMemoryVMBehaviour{Provisioning: out(1)}, Node: &inmemoryv1.InMemoryNodeBehaviour{Provisioning: out(2)},
				APIServer: &inmemoryv1.InMemoryAPIServerBehaviour{Provisioning: out(3)}, Etcd: &inmemoryv1.InMemoryEtcdBehaviour{Provisioning: out(4)},
			},
		},
	}
	for _, tc := range tests {
		if diff := cmp.Diff(tc.want, BehaviourOf(tc.backend)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tc.reason, diff)
		}
	}
}
