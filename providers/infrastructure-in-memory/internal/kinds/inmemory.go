package kinds

import (
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// InMemory returns the kinds InMemoryCluster and InMemoryMachine.
func InMemory() Set {
	return Set{
		ClusterKind: "InMemoryCluster", MachineKind: "InMemoryMachine",
		ClusterFinalizer: inmemoryv1.ClusterFinalizer, MachineFinalizer: inmemoryv1.MachineFinalizer,
		NewCluster: func() step.Object { return &inmemoryv1.InMemoryCluster{} },
		NewMachine: func() step.Object { return &inmemoryv1.InMemoryMachine{} },
		Clusters:   func() client.ObjectList { return &inmemoryv1.InMemoryClusterList{} },
		Machines:   func() client.ObjectList { return &inmemoryv1.InMemoryMachineList{} },
		ClusterOf: func(obj client.Object) (Cluster, bool) {
			c, ok := obj.(*inmemoryv1.InMemoryCluster)
			if !ok {
				return Cluster{}, false
			}
			return OfInMemoryCluster(c), true
		},
		MachineOf: func(obj client.Object) (Machine, bool) {
			m, ok := obj.(*inmemoryv1.InMemoryMachine)
			if !ok {
				return Machine{}, false
			}
			return Machine{Object: m, ObjectMeta: &m.ObjectMeta, MachineFields: inMemoryMachine{m}}, true
		},
	}
}

// OfInMemoryCluster returns what an InMemoryCluster has.
func OfInMemoryCluster(c *inmemoryv1.InMemoryCluster) Cluster {
	return Cluster{Object: c, ObjectMeta: &c.ObjectMeta, Kind: "InMemoryCluster", ClusterFields: inMemoryCluster{c}}
}

// inMemoryCluster implements ClusterFields.
type inMemoryCluster struct{ obj *inmemoryv1.InMemoryCluster }

// Endpoint implements ClusterFields.
func (c inMemoryCluster) Endpoint() (host string, port int) {
	return c.obj.Spec.ControlPlaneEndpoint.Host, c.obj.Spec.ControlPlaneEndpoint.Port
}

// SetEndpoint implements ClusterFields.
func (c inMemoryCluster) SetEndpoint(host string, port int) {
	c.obj.Spec.ControlPlaneEndpoint = inmemoryv1.APIEndpoint{Host: host, Port: port}
}

// RecordedPort implements ClusterFields.
func (c inMemoryCluster) RecordedPort() int { return c.obj.Status.Port }

// Ready implements ClusterFields.
func (c inMemoryCluster) Ready() bool { return c.obj.Status.Ready }

// SetReady implements ClusterFields.
func (c inMemoryCluster) SetReady() {
	c.obj.Status.Ready, c.obj.Status.Port = true, c.obj.Spec.ControlPlaneEndpoint.Port
	c.obj.Status.Initialization = inmemoryv1.InitializationStatus{Provisioned: ptr.To(true)}
	c.obj.Status.FailureDomains = c.obj.Spec.FailureDomains
}

// HostedControlPlane implements ClusterFields.
func (c inMemoryCluster) HostedControlPlane() *inmemoryv1.HostedControlPlane {
	return c.obj.Spec.HostedControlPlane
}

// Hosted implements ClusterFields.
func (c inMemoryCluster) Hosted(version string) { c.obj.Status.HostedControlPlaneVersion = version }

// inMemoryMachine implements MachineFields.
type inMemoryMachine struct{ obj *inmemoryv1.InMemoryMachine }

// ProviderID implements MachineFields.
func (m inMemoryMachine) ProviderID() string { return ptr.Deref(m.obj.Spec.ProviderID, "") }

// SetProviderID implements MachineFields.
func (m inMemoryMachine) SetProviderID(id string) { m.obj.Spec.ProviderID = &id }

// FailureDomain implements MachineFields.
func (m inMemoryMachine) FailureDomain() string { return m.obj.Spec.FailureDomain }

// Behaviour implements MachineFields.
func (m inMemoryMachine) Behaviour() *inmemoryv1.InMemoryMachineBehaviour {
	return m.obj.Spec.Behaviour
}

// BehaviourPath implements MachineFields.
func (inMemoryMachine) BehaviourPath() string { return "spec.behaviour" }

// Ready implements MachineFields.
func (m inMemoryMachine) Ready() bool { return m.obj.Status.Ready }

// SetReady implements MachineFields.
func (m inMemoryMachine) SetReady() {
	m.obj.Status.Ready, m.obj.Status.Initialization.Provisioned = true, ptr.To(true)
}
