package contract

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ControlPlane is what Cluster.spec.controlPlaneRef names.
type ControlPlane struct{ Object }

// counters are the counters that a control plane reports; nil is absent.
type counters struct {
	total       *int32
	updated     *int32
	ready       *int32
	unavailable *int32
}

// ControlPlaneOf is the view on u as a control plane.
func ControlPlaneOf(u *unstructured.Unstructured) ControlPlane { return ControlPlane{Object{u}} }

// Version is spec.version, nil when absent: then the control plane has no versions.
func (c ControlPlane) Version() (*string, error) {
	version, ok, err := field[string](c.Object, "spec", "version")
	if !ok || err != nil {
		return nil, err
	}
	return &version, nil
}

// SetVersion writes spec.version.
func (c ControlPlane) SetVersion(version string) error { return c.set(version, "spec", "version") }

// Replicas is spec.replicas; nil when absent.
func (c ControlPlane) Replicas() (*int32, error) { return c.count("spec", "replicas") }

// SetReplicas writes spec.replicas.
func (c ControlPlane) SetReplicas(n int32) error { return c.set(int64(n), "spec", "replicas") }

// MachineMetadata is spec.machineTemplate.metadata, which the control plane's Machines get.
func (c ControlPlane) MachineMetadata() (clusterv1.ObjectMeta, error) {
	return c.metadata("spec", "machineTemplate", "metadata")
}

// SetMachineMetadata writes spec.machineTemplate.metadata.
func (c ControlPlane) SetMachineMetadata(meta clusterv1.ObjectMeta) error {
	return c.setMetadata(meta, "spec", "machineTemplate", "metadata")
}

// InfrastructureRef is spec.machineTemplate.infrastructureRef; nil when absent.
func (c ControlPlane) InfrastructureRef() (*corev1.ObjectReference, error) {
	return c.ref("spec", "machineTemplate", "infrastructureRef")
}

// SetInfrastructureRef writes spec.machineTemplate.infrastructureRef.
func (c ControlPlane) SetInfrastructureRef(ref *corev1.ObjectReference) error {
	return c.setRef(ref, "spec", "machineTemplate", "infrastructureRef")
}

// Initialized is status.initialized: the first API server has answered once. Absent is false.
func (c ControlPlane) Initialized() (bool, error) {
	initialized, _, err := field[bool](c.Object, "status", "initialized")
	return initialized, err
}

// statusVersion is status.version, the lowest version of the control plane's API servers; empty when absent.
func (c ControlPlane) statusVersion() (string, error) {
	version, _, err := field[string](c.Object, "status", "version")
	return version, err
}

// statusReplicas are the counters of status.
func (c ControlPlane) statusReplicas() (counters, error) {
	var r counters
	for name, into := range map[string]**int32{
		"replicas": &r.total, "updatedReplicas": &r.updated, "readyReplicas": &r.ready, "unavailableReplicas": &r.unavailable,
	} {
		n, err := c.count("status", name)
		if err != nil {
			return counters{}, err
		}
		*into = n
	}
	return r, nil
}

// ExternallyManaged is status.externalManagedControlPlane: the control plane has Nodes without Machines, or no Nodes at
// all. Absent is false.
func (c ControlPlane) ExternallyManaged() (bool, error) {
	external, _, err := field[bool](c.Object, "status", "externalManagedControlPlane")
	return external, err
}

// IsProvisioning says whether the control plane is being made for the first time: it has not reported a version yet.
func (c ControlPlane) IsProvisioning() (bool, error) {
	version, err := c.statusVersion()
	return version == "", err
}

// IsUpgrading says whether the control plane's wanted version is above the one it reports. Without either of them it
// is not.
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

// IsScaling says whether the control plane is on the way to its number of replicas. A counter that is not reported yet
// means that it is, except for the number of unavailable replicas, which may stay away while it is zero.
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
	for _, n := range []*int32{have.total, have.updated, have.ready} {
		if n == nil || *n != *want {
			return true, nil
		}
	}
	return have.unavailable != nil && *have.unavailable > 0, nil
}
