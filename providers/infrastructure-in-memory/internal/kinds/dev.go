package kinds

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Dev returns the kinds DevCluster and DevMachine, of which only objects with backend inMemory are reconciled.
func Dev() Set {
	return Set{
		ClusterKind: "DevCluster", MachineKind: "DevMachine", Backend: "inMemory",
		ClusterFinalizer: dockerv1.DevClusterFinalizer, MachineFinalizer: dockerv1.DevMachineFinalizer,
		NewCluster: func() step.Object { return &dockerv1.DevCluster{} },
		NewMachine: func() step.Object { return &dockerv1.DevMachine{} },
		Clusters:   func() client.ObjectList { return &dockerv1.DevClusterList{} },
		Machines:   func() client.ObjectList { return &dockerv1.DevMachineList{} },
		ClusterOf: func(obj client.Object) (Cluster, bool) {
			c, ok := obj.(*dockerv1.DevCluster)
			if !ok || c.Spec.Backend.InMemory == nil || c.Spec.Backend.Docker != nil {
				return Cluster{}, false
			}
			return Cluster{Object: c, ObjectMeta: &c.ObjectMeta, Kind: "DevCluster", ClusterFields: devCluster{c}}, true
		},
		MachineOf: func(obj client.Object) (Machine, bool) {
			m, ok := obj.(*dockerv1.DevMachine)
			if !ok || m.Spec.Backend.InMemory == nil || m.Spec.Backend.Docker != nil {
				return Machine{}, false
			}
			return Machine{Object: m, ObjectMeta: &m.ObjectMeta, MachineFields: devMachine{m}}, true
		},
	}
}

// devCluster implements ClusterFields.
type devCluster struct{ obj *dockerv1.DevCluster }

// Endpoint implements ClusterFields.
func (c devCluster) Endpoint() (host string, port int) {
	return c.obj.Spec.ControlPlaneEndpoint.Host, int(c.obj.Spec.ControlPlaneEndpoint.Port)
}

// SetEndpoint implements ClusterFields.
func (c devCluster) SetEndpoint(host string, port int) {
	c.obj.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: host, Port: int32(port)}
}

// RecordedPort implements ClusterFields.
func (devCluster) RecordedPort() int { return 0 }

// Ready implements ClusterFields.
func (c devCluster) Ready() bool { return ptr.Deref(c.obj.Status.Initialization.Provisioned, false) }

// SetReady implements ClusterFields.
func (c devCluster) SetReady() { c.obj.Status.Initialization.Provisioned = ptr.To(true) }

// HostedControlPlane implements ClusterFields.
func (devCluster) HostedControlPlane() *inmemoryv1.HostedControlPlane { return nil }

// Hosted implements ClusterFields.
func (devCluster) Hosted(string) {}

// devMachine implements MachineFields.
type devMachine struct{ obj *dockerv1.DevMachine }

// ProviderID implements MachineFields.
func (m devMachine) ProviderID() string { return m.obj.Spec.ProviderID }

// SetProviderID implements MachineFields.
func (m devMachine) SetProviderID(id string) { m.obj.Spec.ProviderID = id }

// FailureDomain implements MachineFields.
func (devMachine) FailureDomain() string { return "" }

// Behaviour implements MachineFields.
func (m devMachine) Behaviour() *inmemoryv1.InMemoryMachineBehaviour {
	return BehaviourOf(m.obj.Spec.Backend.InMemory)
}

// BehaviourPath implements MachineFields.
func (devMachine) BehaviourPath() string { return "spec.backend.inMemory" }

// Ready implements MachineFields.
func (m devMachine) Ready() bool { return ptr.Deref(m.obj.Status.Initialization.Provisioned, false) }

// SetReady implements MachineFields.
func (m devMachine) SetReady() { m.obj.Status.Initialization.Provisioned = ptr.To(true) }

// BehaviourOf returns the behavior that a backend describes.
func BehaviourOf(b *dockerv1.InMemoryMachineBackendSpec) *inmemoryv1.InMemoryMachineBehaviour {
	if b == nil {
		return nil
	}
	out := &inmemoryv1.InMemoryMachineBehaviour{}
	if b.VM != nil {
		out.VM = &inmemoryv1.InMemoryVMBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings(b.VM.Provisioning)}
	}
	if b.Node != nil {
		out.Node = &inmemoryv1.InMemoryNodeBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings(b.Node.Provisioning)}
	}
	if b.APIServer != nil {
		out.APIServer = &inmemoryv1.InMemoryAPIServerBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings(b.APIServer.Provisioning)}
	}
	if b.Etcd != nil {
		out.Etcd = &inmemoryv1.InMemoryEtcdBehaviour{Provisioning: inmemoryv1.CommonProvisioningSettings(b.Etcd.Provisioning)}
	}
	return out
}
