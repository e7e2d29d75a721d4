package patches

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
)

// builtinPaths are the paths below "builtin" that patches may refer to. Lists may be followed by an index.
var builtinPaths = []string{
	"",
	".cluster",
	".cluster.name",
	".cluster.namespace",
	".cluster.topology",
	".cluster.topology.class",
	".cluster.topology.version",
	".cluster.network",
	".cluster.network.serviceDomain",
	".cluster.network.services",
	".cluster.network.pods",
	".cluster.network.ipFamily",
	".controlPlane",
	".controlPlane.name",
	".controlPlane.replicas",
	".controlPlane.version",
	".controlPlane.machineTemplate.infrastructureRef.name",
	".machineDeployment",
	".machineDeployment.class",
	".machineDeployment.name",
	".machineDeployment.replicas",
	".machineDeployment.topologyName",
	".machineDeployment.version",
	".machineDeployment.bootstrap.configRef.name",
	".machineDeployment.infrastructureRef.name",
	".machinePool",
	".machinePool.class",
	".machinePool.name",
	".machinePool.replicas",
	".machinePool.topologyName",
	".machinePool.version",
	".machinePool.bootstrap.configRef.name",
	".machinePool.infrastructureRef.name",
}

// isBuiltin reports whether a reference is to an existing builtin variable.
func isBuiltin(l variable.Reference) bool {
	var path strings.Builder
	for _, step := range l.Steps()[1:] {
		if name, ok := step.(string); ok {
			path.WriteString("." + name)
		}
	}
	return slices.Contains(builtinPaths, path.String()) && l.Name() == variables.Builtin
}

// clusterBuiltin returns builtin.cluster. Fields that the Cluster does not set are absent.
func clusterBuiltin(cluster *clusterv1.Cluster) map[string]any {
	out := map[string]any{
		"name":      cluster.Name,
		"namespace": cluster.Namespace,
		"topology": map[string]any{
			"class":   cluster.Spec.Topology.Class,
			"version": cluster.Spec.Topology.Version,
		},
	}
	if cluster.Spec.ClusterNetwork != nil {
		out["network"] = networkBuiltin(cluster)
	}
	return out
}

// invalidFamily is the ipFamily of a Cluster with inconsistent CIDR blocks.
const invalidFamily = "Invalid"

func networkBuiltin(cluster *clusterv1.Cluster) map[string]any {
	network := cluster.Spec.ClusterNetwork
	out := map[string]any{"ipFamily": invalidFamily}
	if family, err := cluster.GetIPFamily(); err == nil {
		out["ipFamily"] = family.String()
	}
	if network.ServiceDomain != "" {
		out["serviceDomain"] = network.ServiceDomain
	}
	if network.Services != nil {
		out["services"] = list(network.Services.CIDRBlocks)
	}
	if network.Pods != nil {
		out["pods"] = list(network.Pods.CIDRBlocks)
	}
	return out
}

func list(values []string) []any {
	out := make([]any, 0, len(values))
	for _, value := range values {
		out = append(out, value)
	}
	return out
}

// controlPlaneBuiltin returns builtin.controlPlane, from the desired control plane object.
func controlPlaneBuiltin(cluster *clusterv1.Cluster, desired *unstructured.Unstructured) map[string]any {
	out := map[string]any{"name": desired.GetName()}
	if version, found, err := unstructured.NestedString(desired.Object, "spec", "version"); found && err == nil {
		out["version"] = version
	}
	if replicas := cluster.Spec.Topology.ControlPlane.Replicas; replicas != nil {
		out["replicas"] = int64(*replicas)
	}
	name, found, err := unstructured.NestedString(desired.Object, "spec", "machineTemplate", "infrastructureRef", "name")
	if found && err == nil && name != "" {
		out["machineTemplate"] = map[string]any{"infrastructureRef": nameObject(name)}
	}
	return out
}

// builtinVariables returns builtin.machineDeployment or builtin.machinePool.
func (w *Workers) builtinVariables() map[string]any {
	out := map[string]any{
		"class":        w.Class,
		"name":         w.Name,
		"topologyName": w.TopologyName,
		"version":      w.Version,
	}
	if w.Replicas != nil {
		out["replicas"] = int64(*w.Replicas)
	}
	if w.BootstrapName != "" {
		out["bootstrap"] = map[string]any{"configRef": nameObject(w.BootstrapName)}
	}
	if w.InfrastructureName != "" {
		out["infrastructureRef"] = nameObject(w.InfrastructureName)
	}
	return out
}

func nameObject(name string) map[string]any { return map[string]any{"name": name} }
