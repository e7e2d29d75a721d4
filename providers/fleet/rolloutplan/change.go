package rolloutplan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Matches reports whether a Cluster has what a change sets.
func Matches(change *fleetv1.RolloutChange, cluster *clusterv1.Cluster) bool {
	after := cluster.DeepCopy()
	Apply(change, after)
	return equality.Semantic.DeepEqual(cluster.Spec.Topology, after.Spec.Topology)
}

// Apply sets a change in a Cluster, and returns what it replaces.
func Apply(change *fleetv1.RolloutChange, cluster *clusterv1.Cluster) *fleetv1.RolloutPrevious {
	topology, previous := &cluster.Spec.Topology, &fleetv1.RolloutPrevious{}
	if change.ClassRef.Name != "" {
		previous.ClassRef = &fleetv1.RolloutClassReference{Name: topology.ClassRef.Name, Namespace: topology.ClassRef.Namespace}
		if class := classRef(change.ClassRef); key(cluster, class) != key(cluster, topology.ClassRef) {
			topology.ClassRef = class
		}
	}
	if change.Version != "" {
		previous.Version = topology.Version
		if version := withV(change.Version); version != withV(topology.Version) {
			topology.Version = version
		}
	}
	for _, v := range change.Variables {
		i := slices.IndexFunc(topology.Variables, func(has clusterv1.ClusterVariable) bool { return has.Name == v.Name })
		if i < 0 {
			previous.Unset = append(previous.Unset, v.Name)
			topology.Variables = append(topology.Variables, clusterv1.ClusterVariable{Name: v.Name, Value: v.Value})
			continue
		}
		previous.Variables = append(previous.Variables, fleetv1.RolloutVariable{Name: v.Name, Value: topology.Variables[i].Value})
		if !sameJSON(topology.Variables[i].Value, v.Value) {
			topology.Variables[i].Value = v.Value
		}
	}
	return previous
}

// Revert sets back what a change has replaced, except for the version, which never goes back. It reports whether anything changes.
func Revert(previous *fleetv1.RolloutPrevious, cluster *clusterv1.Cluster) bool {
	topology := &cluster.Spec.Topology
	before := topology.DeepCopy()
	if previous.ClassRef != nil {
		topology.ClassRef = classRef(*previous.ClassRef)
	}
	for _, v := range previous.Variables {
		i := slices.IndexFunc(topology.Variables, func(has clusterv1.ClusterVariable) bool { return has.Name == v.Name })
		if i < 0 {
			topology.Variables = append(topology.Variables, clusterv1.ClusterVariable{Name: v.Name, Value: v.Value})
			continue
		}
		topology.Variables[i].Value = v.Value
	}
	topology.Variables = slices.DeleteFunc(topology.Variables, func(v clusterv1.ClusterVariable) bool {
		return slices.Contains(previous.Unset, v.Name)
	})
	return !equality.Semantic.DeepEqual(before, topology)
}

// Reversible reports whether anything of a change can go back.
func Reversible(change *fleetv1.RolloutChange) bool {
	return change.ClassRef.Name != "" || len(change.Variables) > 0
}

// Irreversible returns what of a change cannot go back, for people; empty if all of it can.
func Irreversible(change *fleetv1.RolloutChange) string {
	if change.Version == "" {
		return ""
	}
	return "version " + withV(change.Version) + ": Kubernetes versions do not go back"
}

// key identifies a class: without a namespace, it is that of the Cluster.
func key(cluster *clusterv1.Cluster, class clusterv1.ClusterClassRef) clusterv1.ClusterClassRef {
	if class.Namespace == "" {
		class.Namespace = cluster.Namespace
	}
	return class
}

func classRef(ref fleetv1.RolloutClassReference) clusterv1.ClusterClassRef {
	return clusterv1.ClusterClassRef{Name: ref.Name, Namespace: ref.Namespace}
}

// withV returns a version as the webhook of Clusters writes it.
func withV(version string) string {
	if version != "" && !strings.HasPrefix(version, "v") {
		return "v" + version
	}
	return version
}

// sameJSON reports whether two values are equal, regardless of spaces and the order of keys.
func sameJSON(a, b apiextensionsv1.JSON) bool {
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var left, right any
	if json.Unmarshal(a.Raw, &left) != nil || json.Unmarshal(b.Raw, &right) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(left, right)
}
