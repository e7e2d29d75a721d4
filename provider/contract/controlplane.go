package contract

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// ControlPlane is what Cluster.spec.controlPlaneRef names.
type ControlPlane struct{ Object }

// Timeouts bound the steps of deleting a Machine. Nil and zero are the same for drain and detach: no limit.
type Timeouts struct {
	NodeDrain        *metav1.Duration
	NodeVolumeDetach *metav1.Duration
	NodeDeletion     *metav1.Duration
}

// Replicas are the counters that a control plane reports; nil is absent.
type Replicas struct {
	Total       *int32
	Updated     *int32
	Ready       *int32
	Unavailable *int32
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
	return c.Metadata("spec", "machineTemplate", "metadata")
}

// SetMachineMetadata writes spec.machineTemplate.metadata.
func (c ControlPlane) SetMachineMetadata(meta clusterv1.ObjectMeta) error {
	return c.SetMetadata(meta, "spec", "machineTemplate", "metadata")
}

// InfrastructureRef is spec.machineTemplate.infrastructureRef; nil when absent.
func (c ControlPlane) InfrastructureRef() (*corev1.ObjectReference, error) {
	return c.Ref("spec", "machineTemplate", "infrastructureRef")
}

// SetInfrastructureRef writes spec.machineTemplate.infrastructureRef.
func (c ControlPlane) SetInfrastructureRef(ref *corev1.ObjectReference) error {
	return c.SetRef(ref, "spec", "machineTemplate", "infrastructureRef")
}

// Timeouts are those of spec.machineTemplate.
func (c ControlPlane) Timeouts() (Timeouts, error) {
	var t Timeouts
	var err error
	if t.NodeDrain, err = c.Duration("spec", "machineTemplate", "nodeDrainTimeout"); err != nil {
		return Timeouts{}, err
	}
	if t.NodeVolumeDetach, err = c.Duration("spec", "machineTemplate", "nodeVolumeDetachTimeout"); err != nil {
		return Timeouts{}, err
	}
	if t.NodeDeletion, err = c.Duration("spec", "machineTemplate", "nodeDeletionTimeout"); err != nil {
		return Timeouts{}, err
	}
	return t, nil
}

// SetTimeouts writes those of spec.machineTemplate that are not nil and removes the others.
func (c ControlPlane) SetTimeouts(t Timeouts) error {
	for name, d := range map[string]*metav1.Duration{
		"nodeDrainTimeout": t.NodeDrain, "nodeVolumeDetachTimeout": t.NodeVolumeDetach, "nodeDeletionTimeout": t.NodeDeletion,
	} {
		if err := c.SetDuration(d, "spec", "machineTemplate", name); err != nil {
			return err
		}
	}
	return nil
}

// Initialized is status.initialized: the first API server has answered once. Absent is false.
func (c ControlPlane) Initialized() (bool, error) {
	initialized, _, err := field[bool](c.Object, "status", "initialized")
	return initialized, err
}

// StatusVersion is status.version, the lowest version of the control plane's API servers; empty when absent.
func (c ControlPlane) StatusVersion() (string, error) {
	version, _, err := field[string](c.Object, "status", "version")
	return version, err
}

// StatusReplicas are the counters of status.
func (c ControlPlane) StatusReplicas() (Replicas, error) {
	var r Replicas
	for name, into := range map[string]**int32{
		"replicas": &r.Total, "updatedReplicas": &r.Updated, "readyReplicas": &r.Ready, "unavailableReplicas": &r.Unavailable,
	} {
		n, err := c.count("status", name)
		if err != nil {
			return Replicas{}, err
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
	version, err := c.StatusVersion()
	return version == "", err
}

// IsUpgrading says whether the control plane's wanted version is above the one it reports. Without either of them it
// is not.
func (c ControlPlane) IsUpgrading() (bool, error) {
	want, err := c.Version()
	if err != nil {
		return false, err
	}
	have, err := c.StatusVersion()
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
	have, err := c.StatusReplicas()
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
