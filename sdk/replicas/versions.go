package replicas

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// maxVersions is how many versions a status can have.
const maxVersions = 32

// Versions counts replicas by Kubernetes version.
type Versions map[string]int32

// VersionsOf counts Machines by Version.
func VersionsOf(machines []*clusterv1.Machine) Versions {
	v := Versions{}
	for _, m := range machines {
		v[Version(m)]++
	}
	return v
}

// Version returns the version of the kubelet of a Machine or, while that is unknown, of its spec. It is empty if it has none.
func Version(m *clusterv1.Machine) string {
	if m.Status.NodeInfo != nil && m.Status.NodeInfo.KubeletVersion != "" {
		return m.Status.NodeInfo.KubeletVersion
	}
	return m.Spec.Version
}

// Status returns the counts in ascending order of the versions, of 32 versions at most. Replicas without a version are left out.
func (v Versions) Status() []clusterv1.StatusVersion {
	var list []clusterv1.StatusVersion
	for version, n := range v {
		if version != "" && n > 0 {
			list = append(list, clusterv1.StatusVersion{Version: version, Replicas: ptr.To(n)})
		}
	}
	slices.SortFunc(list, func(a, b clusterv1.StatusVersion) int {
		order, err := contract.CompareVersions(a.Version, b.Version)
		if err != nil || order == 0 {
			return cmp.Compare(a.Version, b.Version)
		}
		return order
	})
	return Bounded(list)
}

// Bounded returns the first 32 versions, the most that a status can have.
func Bounded(versions []clusterv1.StatusVersion) []clusterv1.StatusVersion {
	return versions[:min(len(versions), maxVersions)]
}
