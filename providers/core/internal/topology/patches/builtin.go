package patches

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/exp/runtime/topologymutation/variable"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/variables"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// builtinPaths are the paths below "builtin" that patches may refer to. Lists may be followed by an index.
var builtinPaths = []string{
	"",
	".cluster",
	".cluster.name",
	".cluster.namespace",
	".cluster.uid",
	".cluster.metadata",
	".cluster.metadata.labels",
	".cluster.metadata.annotations",
	".cluster.topology",
	".cluster.topology.class",
	".cluster.topology.classNamespace",
	".cluster.topology.classRef",
	".cluster.topology.classRef.name",
	".cluster.topology.classRef.namespace",
	".cluster.topology.version",
	".cluster.network",
	".cluster.network.serviceDomain",
	".cluster.network.services",
	".cluster.network.pods",
	".cluster.network.ipFamily",
	".controlPlane",
	".controlPlane.metadata",
	".controlPlane.metadata.labels",
	".controlPlane.metadata.annotations",
	".controlPlane.name",
	".controlPlane.replicas",
	".controlPlane.version",
	".controlPlane.machineTemplate.infrastructureRef.name",
	".machineDeployment",
	".machineDeployment.metadata",
	".machineDeployment.metadata.labels",
	".machineDeployment.metadata.annotations",
	".machineDeployment.class",
	".machineDeployment.name",
	".machineDeployment.replicas",
	".machineDeployment.topologyName",
	".machineDeployment.version",
	".machineDeployment.bootstrap.configRef.name",
	".machineDeployment.infrastructureRef.name",
	".machinePool",
	".machinePool.metadata",
	".machinePool.metadata.labels",
	".machinePool.metadata.annotations",
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
	class := cluster.GetClassKey()
	out := map[string]any{
		"name":      cluster.Name,
		"namespace": cluster.Namespace,
		"topology": map[string]any{
			"class":          class.Name,
			"classNamespace": class.Namespace,
			"classRef":       map[string]any{"name": class.Name, "namespace": class.Namespace},
			"version":        cluster.Spec.Topology.Version,
		},
	}
	if cluster.UID != "" {
		out["uid"] = string(cluster.UID)
	}
	// The topology controller adds its labels: they are always here, so that values do not change once it has.
	labels := maps.Clone(cluster.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[clusterv1.ClusterNameLabel], labels[clusterv1.ClusterTopologyOwnedLabel] = cluster.Name, ""
	setMetadata(out, labels, visibleAnnotations(cluster.Annotations))
	if !reflect.DeepEqual(cluster.Spec.ClusterNetwork, clusterv1.ClusterNetwork{}) {
		out["network"] = networkBuiltin(cluster)
	}
	return out
}

// visibleAnnotations leaves out annotations with copies of the object or of fields that a version does not have, and the record of hooks,
// which changes during each upgrade.
func visibleAnnotations(annotations map[string]string) map[string]string {
	out := maps.Clone(annotations)
	for _, hidden := range []string{
		corev1.LastAppliedConfigAnnotation, conversion.OlderVersionAnnotation, conversionDataAnnotation, runtimev1.PendingHooksAnnotation,
	} {
		delete(out, hidden)
	}
	return out
}

// conversionDataAnnotation has the fields of an object that another API version does not have.
const conversionDataAnnotation = "cluster.x-k8s.io/conversion-data"

// setMetadata sets the field metadata of a part of the builtin variable. What is empty is absent.
func setMetadata(part map[string]any, labels, annotations map[string]string) {
	metadata := map[string]any{}
	for name, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(values) > 0 {
			all := make(map[string]any, len(values))
			for key, value := range values {
				all[key] = value
			}
			metadata[name] = all
		}
	}
	if len(metadata) > 0 {
		part["metadata"] = metadata
	}
}

// invalidFamily is the ipFamily of a Cluster with inconsistent CIDR blocks.
const invalidFamily = "Invalid"

func networkBuiltin(cluster *clusterv1.Cluster) map[string]any {
	network := &cluster.Spec.ClusterNetwork
	out := map[string]any{"ipFamily": invalidFamily}
	if family, err := cluster.GetIPFamily(); err == nil {
		out["ipFamily"] = family.String()
	}
	if network.ServiceDomain != "" {
		out["serviceDomain"] = network.ServiceDomain
	}
	if network.Services.CIDRBlocks != nil {
		out["services"] = list(network.Services.CIDRBlocks)
	}
	if network.Pods.CIDRBlocks != nil {
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
	metadata := &cluster.Spec.Topology.ControlPlane.Metadata
	setMetadata(out, metadata.Labels, metadata.Annotations)
	for _, spec := range [][]string{{"spec", "machineTemplate"}, {"spec", "machineTemplate", "spec"}} { // In either contract.
		name, found, err := unstructured.NestedString(desired.Object, append(spec, "infrastructureRef", "name")...)
		if found && err == nil && name != "" {
			out["machineTemplate"] = map[string]any{"infrastructureRef": nameObject(name)}
		}
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
	setMetadata(out, w.Metadata.Labels, w.Metadata.Annotations)
	if w.BootstrapName != "" {
		out["bootstrap"] = map[string]any{"configRef": nameObject(w.BootstrapName)}
	}
	if w.InfrastructureName != "" {
		out["infrastructureRef"] = nameObject(w.InfrastructureName)
	}
	return out
}

func nameObject(name string) map[string]any { return map[string]any{"name": name} }
