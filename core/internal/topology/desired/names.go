package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/core/internal/topology/names"
	"sigs.k8s.io/cluster-api/internal/naming"
)

// What suffixes of names are derived from, besides the UID of the Cluster.
const (
	forInfrastructureCluster = "InfrastructureCluster"
	forControlPlane          = "ControlPlane"
	forMachines              = "Machines"
	forBootstrap             = "Bootstrap"
	forInfrastructure        = "Infrastructure"
)

// InfrastructureClusterName is the name of the Cluster's infrastructure object: the one it has, or a derived one.
func InfrastructureClusterName(cluster *clusterv1.Cluster) string {
	if ref := cluster.Spec.InfrastructureRef; ref != nil {
		return ref.Name
	}
	return naming.WithSuffix(cluster.Name, suffix(cluster, forInfrastructureCluster))
}

// ControlPlaneName is the name of the Cluster's control plane object: the one it has, or the one that the class wants.
func ControlPlaneName(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) (string, error) {
	if ref := cluster.Spec.ControlPlaneRef; ref != nil {
		return ref.Name, nil
	}
	var strategy *string
	if s := class.Spec.ControlPlane.NamingStrategy; s != nil {
		strategy = s.Template
	}
	return names.ControlPlane(strategy, names.Data{Cluster: cluster.Name, Random: suffix(cluster, forControlPlane)})
}

func suffix(cluster *clusterv1.Cluster, parts ...string) string {
	return naming.Suffix(append([]string{string(cluster.UID)}, parts...)...)
}

// workersNaming is how the object of workers gets its name.
type workersNaming struct {
	kind         string // of the object
	topologyName string
	strategy     *string
	render       func(*string, names.Data) (string, error)
}

// name is a name that no object which is being deleted still has; ok is false if the class leaves no other.
func (w workersNaming) name(cluster *clusterv1.Cluster, leaving func(string) bool) (name string, ok bool, err error) {
	previous := ""
	for ordinal := 0; ; ordinal++ {
		parts := []string{w.kind, w.topologyName}
		if ordinal > 0 {
			parts = append(parts, strconv.Itoa(ordinal))
		}
		name, err = w.render(w.strategy, names.Data{Cluster: cluster.Name, Topology: w.topologyName, Random: suffix(cluster, parts...)})
		if err != nil || !leaving(name) {
			return name, err == nil, err
		}
		if name == previous {
			return "", false, nil
		}
		previous = name
	}
}

// rotatedName is the name of a template with new content. Several attempts give different names.
func rotatedName(cluster *clusterv1.Cluster, prefix, place string, template *unstructured.Unstructured, attempt int) (string, error) {
	encoded, err := json.Marshal(template.Object["spec"])
	if err != nil {
		return "", fmt.Errorf("encoding the spec of %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	sum := sha256.Sum256(encoded)
	return naming.WithSuffix(prefix, suffix(cluster, place, hex.EncodeToString(sum[:]), strconv.Itoa(attempt))), nil
}
