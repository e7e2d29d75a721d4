package contract

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ControlPlane is the object that Cluster.spec.controlPlaneRef refers to.
type ControlPlane struct{ Object }

// counters are the replica counts in the status of a control plane; nil if absent.
type counters struct {
	Total       *int32
	Updated     *int32
	Ready       *int32
	Unavailable *int32
}

// ControlPlaneOf returns u as a ControlPlane.
func ControlPlaneOf(u *unstructured.Unstructured) ControlPlane { return ControlPlane{Object{u}} }

// Version returns spec.version; nil if absent, which means that the control plane has no versions.
func (c ControlPlane) Version() (*string, error) {
	version, ok, err := field[string](c.Object, "spec", "version")
	if !ok || err != nil {
		return nil, err
	}
	return &version, nil
}

// SetVersion sets spec.version.
func (c ControlPlane) SetVersion(version string) error { return c.set(version, "spec", "version") }

// Replicas returns spec.replicas; nil if absent.
func (c ControlPlane) Replicas() (*int32, error) { return c.count("spec", "replicas") }

// SetReplicas sets spec.replicas.
func (c ControlPlane) SetReplicas(n int32) error { return c.set(int64(n), "spec", "replicas") }

// MachineMetadata returns spec.machineTemplate.metadata, for the control plane's Machines.
func (c ControlPlane) MachineMetadata() (clusterv1.ObjectMeta, error) {
	return c.metadata("spec", "machineTemplate", "metadata")
}

// SetMachineMetadata sets spec.machineTemplate.metadata.
func (c ControlPlane) SetMachineMetadata(meta clusterv1.ObjectMeta) error {
	return c.setMetadata(meta, "spec", "machineTemplate", "metadata")
}

// InfrastructureRef returns spec.machineTemplate.infrastructureRef; nil if absent.
func (c ControlPlane) InfrastructureRef() (*corev1.ObjectReference, error) {
	return c.ref("spec", "machineTemplate", "infrastructureRef")
}

// SetInfrastructureRef sets spec.machineTemplate.infrastructureRef.
func (c ControlPlane) SetInfrastructureRef(ref *corev1.ObjectReference) error {
	return c.setRef(ref, "spec", "machineTemplate", "infrastructureRef")
}

// Endpoint returns spec.controlPlaneEndpoint; zero if absent: most control planes leave it to the infrastructure.
func (c ControlPlane) Endpoint() (clusterv1.APIEndpoint, error) {
	endpoint, _, err := structured[clusterv1.APIEndpoint](c.Object, "spec", "controlPlaneEndpoint")
	return endpoint, err
}

// HasMachines reports whether the control plane runs on Machines: it has a template for them.
func (c ControlPlane) HasMachines() bool {
	_, ok, _ := unstructured.NestedFieldNoCopy(c.Unstructured.Object, "spec", "machineTemplate")
	return ok
}

// Initialized returns status.initialized: the first API server has responded once. False if absent.
func (c ControlPlane) Initialized() (bool, error) {
	initialized, _, err := field[bool](c.Object, "status", "initialized")
	return initialized, err
}

// statusVersion returns status.version, the lowest version of the API servers; empty if absent.
func (c ControlPlane) statusVersion() (string, error) {
	version, _, err := field[string](c.Object, "status", "version")
	return version, err
}

// statusReplicas returns the counters in the status.
func (c ControlPlane) statusReplicas() (counters, error) {
	var r counters
	for name, into := range map[string]**int32{
		"replicas": &r.Total, "updatedReplicas": &r.Updated, "readyReplicas": &r.Ready, "unavailableReplicas": &r.Unavailable,
	} {
		n, err := c.count("status", name)
		if err != nil {
			return counters{}, err
		}
		*into = n
	}
	return r, nil
}

// ExternallyManaged returns status.externalManagedControlPlane: the control plane has Nodes without Machines, or no Nodes. False if
// absent.
func (c ControlPlane) ExternallyManaged() (bool, error) {
	external, _, err := field[bool](c.Object, "status", "externalManagedControlPlane")
	return external, err
}

// IsProvisioning reports whether the control plane is being created: its status has no version yet.
func (c ControlPlane) IsProvisioning() (bool, error) {
	version, err := c.statusVersion()
	return version == "", err
}

// IsUpgrading reports whether the version in the spec is above the one in the status. False if one of them is absent.
func (c ControlPlane) IsUpgrading() (bool, error) {
	want, err := c.Version()
	if err != nil {
		return false, err
	}
	have, err := c.statusVersion()
	if err != nil {
		return false, err
	}
	if want == nil || have == "" {
		return false, nil
	}
	order, err := CompareVersions(*want, have)
	if err != nil {
		return false, c.errorf([]string{"spec", "version"}, "and status.version cannot be compared: %w", err)
	}
	return order > 0, nil
}

// IsScaling reports whether the control plane does not have its number of replicas yet. Counters that are absent mean that it does not,
// except for unavailable replicas, which may be omitted if zero.
func (c ControlPlane) IsScaling() (bool, error) {
	want, err := c.Replicas()
	if err != nil {
		return false, err
	}
	have, err := c.statusReplicas()
	if err != nil {
		return false, err
	}
	if want == nil {
		return true, nil
	}
	for _, n := range []*int32{have.Total, have.Updated, have.Ready} {
		if n == nil || *n != *want {
			return true, nil
		}
	}
	return have.Unavailable != nil && *have.Unavailable > 0, nil
}
