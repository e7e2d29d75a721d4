package contract

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// InfrastructureCluster is the object that Cluster.spec.infrastructureRef refers to.
type InfrastructureCluster struct{ Object }

// InfrastructureClusterOf returns o as an InfrastructureCluster.
func InfrastructureClusterOf(o Object) InfrastructureCluster { return InfrastructureCluster{o} }

// Provisioned reports whether the infrastructure is complete: status.initialization.provisioned, or status.ready in V1Beta1; false if
// absent.
func (c InfrastructureCluster) Provisioned() (bool, error) { return c.provisioned() }

// ControlPlaneEndpoint returns spec.controlPlaneEndpoint, and whether it is present.
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

// FailureDomains returns status.failureDomains, sorted by name; nil if absent. V1Beta1 has them by name, V1Beta2 as a list.
func (c InfrastructureCluster) FailureDomains() ([]clusterv1.FailureDomain, error) {
	if c.Contract == V1Beta2 {
		list, _, err := structured[[]clusterv1.FailureDomain](c.Object, "status", "failureDomains")
		for i := range list {
			if !ptr.Deref(list[i].ControlPlane, false) {
				list[i].ControlPlane = nil // What a Cluster has does not depend on the contract.
			}
		}
		return sorted(list), err
	}
	byName, _, err := structured[map[string]struct {
		ControlPlane bool              `json:"controlPlane"`
		Attributes   map[string]string `json:"attributes"`
	}](c.Object, "status", "failureDomains")
	if err != nil || len(byName) == 0 {
		return nil, err
	}
	list := make([]clusterv1.FailureDomain, 0, len(byName))
	for name, d := range byName {
		domain := clusterv1.FailureDomain{Name: name, Attributes: d.Attributes}
		if d.ControlPlane {
			domain.ControlPlane = ptr.To(true)
		}
		list = append(list, domain)
	}
	return sorted(list), nil
}

func sorted(domains []clusterv1.FailureDomain) []clusterv1.FailureDomain {
	slices.SortFunc(domains, func(a, b clusterv1.FailureDomain) int { return strings.Compare(a.Name, b.Name) })
	return domains
}

// InfrastructureMachine is the object that Machine.spec.infrastructureRef refers to.
type InfrastructureMachine struct{ Object }

// InfrastructureMachineOf returns o as an InfrastructureMachine.
func InfrastructureMachineOf(o Object) InfrastructureMachine { return InfrastructureMachine{o} }

// Provisioned reports whether the infrastructure is complete: status.initialization.provisioned, or status.ready in V1Beta1; false if
// absent.
func (m InfrastructureMachine) Provisioned() (bool, error) { return m.provisioned() }

// ProviderID returns spec.providerID; empty if absent.
func (m InfrastructureMachine) ProviderID() (string, error) {
	id, _, err := field[string](m.Object, "spec", "providerID")
	return id, err
}

// FailureDomain returns where the machine is; nil if the provider does not report it: status.failureDomain in V1Beta2, otherwise
// spec.failureDomain.
func (m InfrastructureMachine) FailureDomain() (*string, error) {
	if m.Contract == V1Beta2 {
		if domain, ok, err := field[string](m.Object, "status", "failureDomain"); ok || err != nil {
			return &domain, err
		}
	}
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

// InfrastructureMachinePoolOf returns o as an InfrastructureMachinePool.
func InfrastructureMachinePoolOf(o Object) InfrastructureMachinePool {
	return InfrastructureMachinePool{o}
}

// Provisioned reports whether the infrastructure is complete: status.initialization.provisioned, or status.ready in V1Beta1; false if
// absent.
func (p InfrastructureMachinePool) Provisioned() (bool, error) { return p.provisioned() }

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

// ProvisionedField returns the path of the field that Provisioned reads.
func (m InfrastructureMachine) ProvisionedField() string { return m.flagField("ready", "provisioned") }

// ProvisionedField returns the path of the field that Provisioned reads.
func (p InfrastructureMachinePool) ProvisionedField() string {
	return p.flagField("ready", "provisioned")
}
