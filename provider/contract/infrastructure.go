package contract

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// InfrastructureCluster is what Cluster.spec.infrastructureRef names.
type InfrastructureCluster struct{ Object }

// InfrastructureClusterOf is the view on u as an infrastructure cluster.
func InfrastructureClusterOf(u *unstructured.Unstructured) InfrastructureCluster {
	return InfrastructureCluster{Object{u}}
}

// ControlPlaneEndpoint is spec.controlPlaneEndpoint. Present says whether the field is there at all: a provider that
// is ready may leave it zero, but not out.
func (c InfrastructureCluster) ControlPlaneEndpoint() (endpoint clusterv1.APIEndpoint, present bool, err error) {
	return structured[clusterv1.APIEndpoint](c.Object, "spec", "controlPlaneEndpoint")
}

// ControlPlaneEndpointPaths are the fields of an infrastructure cluster that belong to the provider or the user as long
// as the object's template leaves them zero.
func ControlPlaneEndpointPaths() [][]string {
	return [][]string{{"spec", "controlPlaneEndpoint", "host"}, {"spec", "controlPlaneEndpoint", "port"}}
}

// FailureDomains is status.failureDomains; nil when absent.
func (c InfrastructureCluster) FailureDomains() (clusterv1.FailureDomains, error) {
	domains, _, err := structured[clusterv1.FailureDomains](c.Object, "status", "failureDomains")
	return domains, err
}

// InfrastructureMachine is what Machine.spec.infrastructureRef names.
type InfrastructureMachine struct{ Object }

// InfrastructureMachineOf is the view on u as an infrastructure machine.
func InfrastructureMachineOf(u *unstructured.Unstructured) InfrastructureMachine {
	return InfrastructureMachine{Object{u}}
}

// ProviderID is spec.providerID; empty when absent.
func (m InfrastructureMachine) ProviderID() (string, error) {
	id, _, err := field[string](m.Object, "spec", "providerID")
	return id, err
}

// FailureDomain is spec.failureDomain, nil when absent: the provider then has no opinion.
func (m InfrastructureMachine) FailureDomain() (*string, error) {
	domain, ok, err := field[string](m.Object, "spec", "failureDomain")
	if !ok || err != nil {
		return nil, err
	}
	return &domain, nil
}

// Addresses is status.addresses.
func (m InfrastructureMachine) Addresses() (clusterv1.MachineAddresses, error) {
	addresses, _, err := structured[clusterv1.MachineAddresses](m.Object, "status", "addresses")
	return addresses, err
}

// Interruptible is status.interruptible; absent is false.
func (m InfrastructureMachine) Interruptible() (bool, error) {
	interruptible, _, err := field[bool](m.Object, "status", "interruptible")
	return interruptible, err
}
