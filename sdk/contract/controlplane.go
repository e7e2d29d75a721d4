package contract

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
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

// ControlPlaneOf returns o as a ControlPlane.
func ControlPlaneOf(o Object) ControlPlane { return ControlPlane{o} }

// machineSpec returns the path of a field of the template of Machines, which are in a spec of their own in V1Beta2.
func (c ControlPlane) machineSpec(names ...string) []string {
	path := []string{"spec", "machineTemplate"}
	if c.Contract == V1Beta2 {
		path = append(path, "spec")
	}
	return append(path, names...)
}

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

// InfrastructureRef returns the template of the infrastructure of Machines, spec.machineTemplate.spec.infrastructureRef, or
// spec.machineTemplate.infrastructureRef in V1Beta1; nil if absent. In V1Beta2, its apiVersion has a group and no version.
func (c ControlPlane) InfrastructureRef() (*corev1.ObjectReference, error) {
	ref, ok, err := structured[struct {
		corev1.ObjectReference `json:",inline"`
		APIGroup               string `json:"apiGroup"`
	}](c.Object, c.machineSpec("infrastructureRef")...)
	if !ok || err != nil {
		return nil, err
	}
	if c.Contract == V1Beta2 {
		ref.APIVersion = schema.GroupVersion{Group: ref.APIGroup}.String()
	}
	return &ref.ObjectReference, nil
}

// SetInfrastructureRef sets what InfrastructureRef returns. Only kind, name, and apiVersion and namespace in V1Beta1 or the group in
// V1Beta2 are part of the contract.
func (c ControlPlane) SetInfrastructureRef(ref *corev1.ObjectReference) error {
	value := map[string]any{"kind": ref.Kind, "name": ref.Name}
	if c.Contract == V1Beta2 {
		value["apiGroup"] = ref.GroupVersionKind().Group
	} else {
		value["apiVersion"] = ref.APIVersion
		if ref.Namespace != "" {
			value["namespace"] = ref.Namespace
		}
	}
	return c.set(value, c.machineSpec("infrastructureRef")...)
}

// SetNodeTimeouts sets the timeouts that are not nil, for the control plane's Machines.
func (c ControlPlane) SetNodeTimeouts(t clusterv1.MachineDeletionSpec) error {
	for _, timeout := range []struct {
		seconds *int32
		name    string
	}{
		{t.NodeDrainTimeoutSeconds, "nodeDrainTimeout"}, {t.NodeVolumeDetachTimeoutSeconds, "nodeVolumeDetachTimeout"},
		{t.NodeDeletionTimeoutSeconds, "nodeDeletionTimeout"},
	} {
		if timeout.seconds == nil {
			continue
		}
		var err error
		if c.Contract == V1Beta2 {
			err = c.set(int64(*timeout.seconds), c.machineSpec("deletion", timeout.name+"Seconds")...)
		} else {
			err = c.set((time.Duration(*timeout.seconds) * time.Second).String(), c.machineSpec(timeout.name)...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SetReadinessGates sets the readiness gates of the control plane's Machines; none are left to the template.
func (c ControlPlane) SetReadinessGates(gates []clusterv1.MachineReadinessGate) error {
	return setList(c, gates, c.machineSpec("readinessGates")...)
}

// SetTaints sets the taints of the control plane's Machines; none are left to the template.
func (c ControlPlane) SetTaints(taints []clusterv1.MachineTaint) error {
	return setList(c, taints, c.machineSpec("taints")...)
}

func setList[T any](c ControlPlane, items []T, path ...string) error {
	if len(items) == 0 {
		return nil
	}
	list := make([]any, 0, len(items))
	for i := range items {
		item, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&items[i])
		if err != nil {
			return c.errorf(path, "cannot be written: %w", err)
		}
		list = append(list, item)
	}
	return c.set(list, path...)
}

// SetRolloutAfter sets when Machines that are older are replaced: spec.rollout.after, or spec.rolloutAfter in V1Beta1. The zero time
// leaves it to the template.
func (c ControlPlane) SetRolloutAfter(after metav1.Time) error {
	if after.IsZero() {
		return nil
	}
	text := after.UTC().Format(time.RFC3339)
	if c.Contract == V1Beta2 {
		return c.set(text, "spec", "rollout", "after")
	}
	return c.set(text, "spec", "rolloutAfter")
}

// Endpoint returns spec.controlPlaneEndpoint; zero if absent: most control planes leave it to the infrastructure.
func (c ControlPlane) Endpoint() (clusterv1.APIEndpoint, error) {
	endpoint, _, err := structured[clusterv1.APIEndpoint](c.Object, "spec", "controlPlaneEndpoint")
	return endpoint, err
}

// HasMachines reports whether the control plane runs on Machines: it has a template for them.
func (c ControlPlane) HasMachines() bool {
	_, ok, _ := c.lookup("spec", "machineTemplate")
	return ok
}

// Initialized reports whether the first API server has responded once: status.initialization.controlPlaneInitialized, or
// status.initialized in V1Beta1. False if absent.
func (c ControlPlane) Initialized() (bool, error) {
	return c.flag("initialized", "controlPlaneInitialized")
}

// Ready returns status.ready: the API servers respond. In V1Beta2 it is Initialized. False if absent.
func (c ControlPlane) Ready() (bool, error) { return c.flag("ready", "controlPlaneInitialized") }

// statusVersion returns the lowest version of the control plane; empty if absent: status.version, or the first one of status.versions in
// V1Beta2.
func (c ControlPlane) statusVersion() (string, error) {
	if c.Contract == V1Beta2 {
		versions, _, err := structured[[]versionCount](c.Object, "status", "versions")
		if err != nil {
			return "", err
		}
		if len(versions) > 0 {
			return versions[0].Version, c.checkVersions(versions)
		}
	}
	version, _, err := field[string](c.Object, "status", "version")
	return version, err
}

// versionCount is a version of Kubernetes, and how many replicas of a control plane have it.
type versionCount struct {
	Version  string `json:"version"`
	Replicas int32  `json:"replicas"`
}

// checkVersions returns an error unless versions are in ascending order, and have replicas.
func (c ControlPlane) checkVersions(versions []versionCount) error {
	path := []string{"status", "versions"}
	for i, v := range versions {
		if v.Replicas < 0 {
			return c.errorf(path, "has %d replicas of version %s", v.Replicas, v.Version)
		}
		if i == 0 {
			continue
		}
		order, err := CompareVersions(versions[i-1].Version, v.Version)
		if err == nil && order >= 0 {
			err = errors.New("the contract asks for an ascending order")
		}
		if err != nil {
			return c.errorf(path, "has version %s before %s: %w", versions[i-1].Version, v.Version, err)
		}
	}
	return nil
}

// statusReplicas returns the counters in the status. V1Beta2 counts available replicas; what it does not count is unavailable.
func (c ControlPlane) statusReplicas() (counters, error) {
	var r counters
	var available *int32
	into := map[string]**int32{
		"replicas": &r.Total, "updatedReplicas": &r.Updated, "readyReplicas": &r.Ready, "unavailableReplicas": &r.Unavailable,
	}
	if c.Contract == V1Beta2 {
		into = map[string]**int32{
			"replicas": &r.Total, "upToDateReplicas": &r.Updated, "readyReplicas": &r.Ready, "availableReplicas": &available,
		}
	}
	for name, n := range into {
		var err error
		if *n, err = c.count("status", name); err != nil {
			return counters{}, err
		}
	}
	if c.Contract == V1Beta2 && r.Total != nil {
		r.Unavailable = ptr.To(max(0, *r.Total-ptr.Deref(available, 0)))
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
