package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Pinned is a group of workers in a topology that has a version of its own.
type Pinned struct {
	// Kind and Name identify the group in the topology. Kind is MachineDeployment or MachinePool.
	Kind, Name string
	// Version is its own version.
	Version string
	// Path is the path of Version.
	Path *field.Path
}

// PinnedWorkers returns the pinned groups of a topology, MachineDeployments first; path is the path of the topology.
func PinnedWorkers(t *clusterv1.Topology, path *field.Path) []Pinned {
	var all []Pinned
	add := func(kind, list, name, version string, i int) {
		if version != "" {
			all = append(all, Pinned{Kind: kind, Name: name, Version: version, Path: path.Child("workers", list).Index(i).Child("version")})
		}
	}
	for i := range t.Workers.MachineDeployments {
		md := &t.Workers.MachineDeployments[i]
		add("MachineDeployment", "machineDeployments", md.Name, md.Version, i)
	}
	for i := range t.Workers.MachinePools {
		mp := &t.Workers.MachinePools[i]
		add(clusterv1.MachinePoolKind, "machinePools", mp.Name, mp.Version, i)
	}
	return all
}

// String returns kind and name.
func (p Pinned) String() string { return p.Kind + " " + p.Name }

// In returns the own version of the same group in another topology; empty if it has none.
func (p Pinned) In(t *clusterv1.Topology) string {
	if p.Kind == clusterv1.MachinePoolKind {
		for i := range t.Workers.MachinePools {
			if mp := &t.Workers.MachinePools[i]; mp.Name == p.Name {
				return mp.Version
			}
		}
		return ""
	}
	for i := range t.Workers.MachineDeployments {
		if md := &t.Workers.MachineDeployments[i]; md.Name == p.Name {
			return md.Version
		}
	}
	return ""
}

// Below rejects a version above that of the topology, or whose kubelets are too old for it. Where the version of the topology is raised and
// leaves an unchanged group behind, the error is about that of the topology.
func (p Pinned) Below(old, current *clusterv1.Topology, path *field.Path) field.ErrorList {
	version := current.Version
	changed := p.In(old) != p.Version
	if !changed && old.Version == version {
		return nil
	}
	if order, err := contract.CompareVersions(p.Version, version); err != nil || order > 0 {
		return field.ErrorList{field.Invalid(p.Path, p.Version, fmt.Sprintf("must not be higher than %s, the version of the topology", version))}
	}
	if WithinSkew(p.Version, version) {
		return nil
	}
	v, err := parse(version)
	if err != nil {
		return nil // It is reported already.
	}
	skew := kubeletSkew(v.Minor)
	oldest := fmt.Sprintf("v%d.%d or later", v.Major, v.Minor-min(skew, v.Minor))
	if changed {
		return field.ErrorList{field.Invalid(p.Path, p.Version, fmt.Sprintf(
			"must be %s, because kubelets may be at most %d minor versions older than %s, the version of the topology", oldest, skew, version))}
	}
	return field.ErrorList{field.Invalid(path.Child("version"), version, fmt.Sprintf(
		"%s is pinned to %s, and kubelets may be at most %d minor versions older: first raise %s to %s, or remove it",
		p, p.Version, skew, p.Path, oldest))}
}

// Raised rejects a version that is lower than the one that the group had as its own until now.
func (p Pinned) Raised(was string) field.ErrorList {
	if order, err := contract.CompareVersions(p.Version, was); err == nil && order >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(p.Path, p.Version, fmt.Sprintf("must not be lower than the previous version %s", was))}
}

// WithinSkew reports whether kubelets of a version are supported by a control plane of another version: Kubernetes allows them to be three
// minor versions older, two before v1.28, and not newer.
func WithinSkew(kubelet, controlPlane string) bool {
	own, plane, err := parseBoth(kubelet, controlPlane)
	return err == nil && own.Major == plane.Major && own.Minor <= plane.Minor && own.Minor+kubeletSkew(plane.Minor) >= plane.Minor
}

// kubeletSkew returns how many minor versions kubelets may be older than a control plane of a minor version.
func kubeletSkew(minor uint64) uint64 {
	if minor < 28 {
		return 2
	}
	return 3
}
