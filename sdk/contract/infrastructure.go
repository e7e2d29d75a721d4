package contract

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// InfrastructureCluster is the object that Cluster.spec.infrastructureRef refers to.
type InfrastructureCluster struct{ Object }

// InfrastructureClusterOf returns u as an InfrastructureCluster.
func InfrastructureClusterOf(u *unstructured.Unstructured) InfrastructureCluster {
	return InfrastructureCluster{Object{u}}
}

// ControlPlaneEndpoint returns spec.controlPlaneEndpoint, and whether it is present: a provider that is ready may leave it zero, but must
// not omit it.
func (c InfrastructureCluster) ControlPlaneEndpoint() (endpoint clusterv1.APIEndpoint, present bool, err error) {
	_, present, err = c.lookup("spec", "controlPlaneEndpoint")
	if err != nil {
		return endpoint, present, err
	}
	paths := ControlPlaneEndpointPaths()
	if endpoint.Host, _, err = field[string](c.Object, paths[0]...); err != nil {
		return endpoint, present, err
	}
	port, err := c.count(paths[1]...)
	endpoint.Port = ptr.Deref(port, 0)
	return endpoint, present, err
}

// ControlPlaneEndpointPaths returns the fields of an infrastructure cluster that belong to the provider or the user if they are
// zero in the object's template.
func ControlPlaneEndpointPaths() [][]string {
	return [][]string{{"spec", "controlPlaneEndpoint", "host"}, {"spec", "controlPlaneEndpoint", "port"}}
}

// FailureDomains returns status.failureDomains; nil if absent.
func (c InfrastructureCluster) FailureDomains() (clusterv1.FailureDomains, error) {
	domains, _, err := structured[clusterv1.FailureDomains](c.Object, "status", "failureDomains")
	return domains, err
}

// InfrastructureMachine is the object that Machine.spec.infrastructureRef refers to.
type InfrastructureMachine struct{ Object }

// InfrastructureMachineOf returns u as an InfrastructureMachine.
func InfrastructureMachineOf(u *unstructured.Unstructured) InfrastructureMachine {
	return InfrastructureMachine{Object{u}}
}

// ProviderID returns spec.providerID; empty if absent.
func (m InfrastructureMachine) ProviderID() (string, error) {
	id, _, err := field[string](m.Object, "spec", "providerID")
	return id, err
}

// FailureDomain returns spec.failureDomain; nil if the provider does not report one.
func (m InfrastructureMachine) FailureDomain() (*string, error) {
	domain, ok, err := field[string](m.Object, "spec", "failureDomain")
	if !ok || err != nil {
		return nil, err
	}
	return &domain, nil
}

// Addresses returns status.addresses.
func (m InfrastructureMachine) Addresses() (clusterv1.MachineAddresses, error) {
	addresses, _, err := structured[clusterv1.MachineAddresses](m.Object, "status", "addresses")
	return addresses, err
}

// Interruptible returns status.interruptible; false if absent.
func (m InfrastructureMachine) Interruptible() (bool, error) {
	interruptible, _, err := field[bool](m.Object, "status", "interruptible")
	return interruptible, err
}

// InfrastructureMachinePool is the object that MachinePool.spec.template.spec.infrastructureRef refers to.
type InfrastructureMachinePool struct{ Object }

// InfrastructureMachinePoolOf returns u as an InfrastructureMachinePool.
func InfrastructureMachinePoolOf(u *unstructured.Unstructured) InfrastructureMachinePool {
	return InfrastructureMachinePool{Object{u}}
}

// ProviderIDs returns spec.providerIDList; nil if absent.
func (p InfrastructureMachinePool) ProviderIDs() ([]string, error) {
	ids, _, err := structured[[]string](p.Object, "spec", "providerIDList")
	return ids, err
}

// Replicas returns status.replicas; nil if absent.
func (p InfrastructureMachinePool) Replicas() (*int32, error) {
	return p.count("status", "replicas")
}

// MachineKind returns status.infrastructureMachineKind, the kind of the infrastructure machines of the pool, which is in the group of
// the pool itself; empty if the provider has none.
func (p InfrastructureMachinePool) MachineKind() (string, error) {
	kind, _, err := field[string](p.Object, "status", "infrastructureMachineKind")
	return kind, err
}
