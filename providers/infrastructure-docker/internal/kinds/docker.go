package kinds

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Docker returns the kinds DockerCluster and DockerMachine.
func Docker() Set {
	return Set{
		ClusterKind: "DockerCluster", MachineKind: "DockerMachine",
		ClusterFinalizer: dockerv1.ClusterFinalizer, MachineFinalizer: dockerv1.MachineFinalizer,
		NewCluster: func() step.Object { return &dockerv1.DockerCluster{} },
		NewMachine: func() step.Object { return &dockerv1.DockerMachine{} },
		Clusters:   func() client.ObjectList { return &dockerv1.DockerClusterList{} },
		Machines:   func() client.ObjectList { return &dockerv1.DockerMachineList{} },
		ClusterOf: func(obj client.Object) (Cluster, bool) {
			c, ok := obj.(*dockerv1.DockerCluster)
			if !ok {
				return Cluster{}, false
			}
			return OfDockerCluster(c), true
		},
		MachineOf: func(obj client.Object) (Machine, bool) {
			m, ok := obj.(*dockerv1.DockerMachine)
			if !ok {
				return Machine{}, false
			}
			return OfDockerMachine(m), true
		},
	}
}

// OfDockerCluster returns the parts of a DockerCluster.
func OfDockerCluster(c *dockerv1.DockerCluster) Cluster {
	return Cluster{
		Object: c, ObjectMeta: &c.ObjectMeta, Kind: "DockerCluster", Spec: &c.Spec.DockerClusterBackendSpec, Path: "spec",
		Endpoint: &c.Spec.ControlPlaneEndpoint, Initialization: &c.Status.Initialization, FailureDomains: &c.Status.FailureDomains,
	}
}

// OfDockerMachine returns the parts of a DockerMachine.
func OfDockerMachine(m *dockerv1.DockerMachine) Machine {
	return Machine{
		Object: m, ObjectMeta: &m.ObjectMeta, Kind: "DockerMachine", Spec: &m.Spec.DockerMachineBackendSpec, Path: "spec",
		ProviderID: &m.Spec.ProviderID, Initialization: &m.Status.Initialization, Addresses: &m.Status.Addresses,
		LoadBalancerConfigured: m.Status.LoadBalancerConfigured,
	}
}
