package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Dev returns the kinds DevCluster and DevMachine, of which only objects with backend docker are reconciled.
func Dev() Set {
	return Set{
		ClusterKind: "DevCluster", MachineKind: "DevMachine", Backend: "docker",
		ClusterFinalizer: dockerv1.DevClusterFinalizer, MachineFinalizer: dockerv1.DevMachineFinalizer,
		NewCluster: func() step.Object { return &dockerv1.DevCluster{} },
		NewMachine: func() step.Object { return &dockerv1.DevMachine{} },
		Clusters:   func() client.ObjectList { return &dockerv1.DevClusterList{} },
		Machines:   func() client.ObjectList { return &dockerv1.DevMachineList{} },
		ClusterOf: func(obj client.Object) (Cluster, bool) {
			c, ok := obj.(*dockerv1.DevCluster)
			if !ok || c.Spec.Backend.Docker == nil || c.Spec.Backend.InMemory != nil {
				return Cluster{}, false
			}
			return Cluster{
				Object: c, ObjectMeta: &c.ObjectMeta, Kind: "DevCluster", Spec: c.Spec.Backend.Docker, Path: "spec.backend.docker",
				Endpoint: &c.Spec.ControlPlaneEndpoint, Initialization: &c.Status.Initialization, FailureDomains: &c.Status.FailureDomains,
			}, true
		},
		MachineOf: func(obj client.Object) (Machine, bool) {
			m, ok := obj.(*dockerv1.DevMachine)
			if !ok || m.Spec.Backend.Docker == nil || m.Spec.Backend.InMemory != nil {
				return Machine{}, false
			}
			return OfDevMachine(m), true
		},
	}
}

// OfDevMachine returns the parts of a DevMachine with backend docker.
func OfDevMachine(m *dockerv1.DevMachine) Machine {
	return Machine{
		Object: m, ObjectMeta: &m.ObjectMeta, Kind: "DevMachine", Spec: m.Spec.Backend.Docker, Path: "spec.backend.docker",
		ProviderID: &m.Spec.ProviderID, Initialization: &m.Status.Initialization, Addresses: &m.Status.Addresses,
		LoadBalancerConfigured: m.Status.LoadBalancerConfigured,
	}
}
