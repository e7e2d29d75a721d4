// Package names computes the names of a topology's objects: by the naming strategies of its class if it has any, and
// otherwise from the purpose of the object. Computing the name of an object again gives the same name, so that it cannot be
// created twice.
package names

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// Purposes of a Cluster's templates.
const (
	ForMachines       = "Machines"
	ForBootstrap      = "Bootstrap"
	ForInfrastructure = "Infrastructure"
)

// InfrastructureCluster returns the name of the Cluster's infrastructure object: the current name, or one by the class's strategy.
func InfrastructureCluster(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) (string, error) {
	if ref := cluster.Spec.InfrastructureRef; ref.IsDefined() {
		return ref.Name, nil
	}
	return InfrastructureStrategy(class.Spec.Infrastructure.Naming.Template,
		Data{Cluster: cluster.Name, Random: suffix(cluster, "InfrastructureCluster")})
}

// ControlPlane returns the name of the Cluster's control plane object: the current name, or one by the class's strategy.
func ControlPlane(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) (string, error) {
	if ref := cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		return ref.Name, nil
	}
	return ControlPlaneStrategy(class.Spec.ControlPlane.Naming.Template, Data{Cluster: cluster.Name, Random: suffix(cluster, "ControlPlane")})
}

func suffix(cluster *clusterv1.Cluster, parts ...string) string {
	return naming.Suffix(append([]string{string(cluster.UID)}, parts...)...)
}

// Workers determines the name of a MachineDeployment or MachinePool.
type Workers struct {
	// Kind is the kind of the object.
	Kind string
	// Topology is the name of the workers in the topology.
	Topology string
	// Strategy and Template are those of the class of workers; an empty template means the default.
	Strategy Strategy
	Template string
}

// Name returns the first name that no terminating object has. ok is false if the strategy yields no other name: its template
// does not use .random.
func (w Workers) Name(cluster *clusterv1.Cluster, terminating func(string) bool) (name string, ok bool, err error) {
	previous := ""
	for ordinal := 0; ; ordinal++ {
		parts := []string{w.Kind, w.Topology}
		if ordinal > 0 {
			parts = append(parts, strconv.Itoa(ordinal))
		}
		name, err = w.Strategy(w.Template, Data{Cluster: cluster.Name, Topology: w.Topology, Random: suffix(cluster, parts...)})
		if err != nil || !terminating(name) {
			return name, err == nil, err
		}
		if name == previous {
			return "", false, nil
		}
		previous = name
	}
}

// Template returns the initial name of the template for a purpose of an object.
func Template(cluster *clusterv1.Cluster, prefix, purpose, object string) string {
	return naming.WithSuffix(prefix, suffix(cluster, purpose, object))
}

// Rotated returns the name of a template with new content. It depends on the purpose and the content; attempts differ.
func Rotated(cluster *clusterv1.Cluster, prefix, purpose string, template *unstructured.Unstructured, attempt int) (string, error) {
	content, err := ContentHash(template)
	if err != nil {
		return "", err
	}
	return naming.WithSuffix(prefix, suffix(cluster, purpose, content, strconv.Itoa(attempt))), nil
}

// ContentHash returns a hash of a template's spec. Occurrences of the template's own name, which patches may write there, are
// not part of it.
func ContentHash(template *unstructured.Unstructured) (string, error) {
	encoded, err := json.Marshal(template.Object["spec"])
	if err != nil {
		return "", fmt.Errorf("encoding the spec of %s %s: %w", template.GetKind(), template.GetName(), err)
	}
	if name := template.GetName(); name != "" {
		encoded = bytes.ReplaceAll(encoded, []byte(name), nil)
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}
