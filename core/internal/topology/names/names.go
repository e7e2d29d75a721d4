// Package names computes the names of the objects of a topology: by the naming strategies of its class where there
// are such, and from what an object is for everywhere else, so that making it twice collides.
package names

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/naming"
)

// What a template of a Cluster is for.
const (
	ForMachines       = "Machines"
	ForBootstrap      = "Bootstrap"
	ForInfrastructure = "Infrastructure"
)

// InfrastructureCluster is the name of the Cluster's infrastructure object: the one it has, or a derived one.
func InfrastructureCluster(cluster *clusterv1.Cluster) string {
	if ref := cluster.Spec.InfrastructureRef; ref != nil {
		return ref.Name
	}
	return naming.WithSuffix(cluster.Name, suffix(cluster, "InfrastructureCluster"))
}

// ControlPlane is the name of the Cluster's control plane object: the one it has, or the one that the class wants.
func ControlPlane(cluster *clusterv1.Cluster, class *clusterv1.ClusterClass) (string, error) {
	if ref := cluster.Spec.ControlPlaneRef; ref != nil {
		return ref.Name, nil
	}
	var template *string
	if s := class.Spec.ControlPlane.NamingStrategy; s != nil {
		template = s.Template
	}
	return ControlPlaneStrategy(template, Data{Cluster: cluster.Name, Random: suffix(cluster, "ControlPlane")})
}

func suffix(cluster *clusterv1.Cluster, parts ...string) string {
	return naming.Suffix(append([]string{string(cluster.UID)}, parts...)...)
}

// Workers is how the object of workers gets its name.
type Workers struct {
	// Kind is that of the object.
	Kind string
	// Topology is the name of the workers in the topology.
	Topology string
	// Strategy and Template are those of their class; a nil template is the default one.
	Strategy Strategy
	Template *string
}

// Name is a name that no object which is being deleted still has; ok is false if the class leaves no other.
func (w Workers) Name(cluster *clusterv1.Cluster, leaving func(string) bool) (name string, ok bool, err error) {
	previous := ""
	for ordinal := 0; ; ordinal++ {
		parts := []string{w.Kind, w.Topology}
		if ordinal > 0 {
			parts = append(parts, strconv.Itoa(ordinal))
		}
		name, err = w.Strategy(w.Template, Data{Cluster: cluster.Name, Topology: w.Topology, Random: suffix(cluster, parts...)})
		if err != nil || !leaving(name) {
			return name, err == nil, err
		}
		if name == previous {
			return "", false, nil
		}
		previous = name
	}
}

// Template is the first name of a template: what it is for, and for which object.
func Template(cluster *clusterv1.Cluster, prefix, purpose, object string) string {
	return naming.WithSuffix(prefix, suffix(cluster, purpose, object))
}

// Rotated is the name of a template with new content, in one place of the topology. Several attempts give different names.
func Rotated(cluster *clusterv1.Cluster, prefix, place string, template *unstructured.Unstructured, attempt int) (string, error) {
	content, err := ContentHash(template)
	if err != nil {
		return "", err
	}
	return naming.WithSuffix(prefix, suffix(cluster, place, content, strconv.Itoa(attempt))), nil
}

// ContentHash is a hash of the spec of a template. The template's own name, which patches may write there, is not content.
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
