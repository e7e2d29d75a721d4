package generate

import (
	"path"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// notServedYet lists the versions whose types exist, but get no definitions, and why.
func notServedYet() map[string]string {
	return map[string]string{
		"v1beta2": "controllers read and write v1beta1, and nothing converts between the two when an API server asks",
	}
}

// isServed reports whether the kinds of a package get definitions.
func isServed(pkg string) bool {
	_, ok := notServedYet()[path.Base(pkg)]
	return !ok
}

// unservedVersions lists the versions of a kind that releases up to v1.7 defined, but no longer served. If such a version
// was ever stored, it is in the definition's status.storedVersions, and the API server rejects a definition without it:
// management clusters of those releases could not be upgraded in place. Newer kinds have none.
func unservedVersions(kind schema.GroupKind) []string {
	const older, newer = "v1alpha3", "v1alpha4"
	switch kind.String() {
	case "Cluster.cluster.x-k8s.io", "Machine.cluster.x-k8s.io", "MachineSet.cluster.x-k8s.io", "MachineDeployment.cluster.x-k8s.io",
		"MachinePool.cluster.x-k8s.io", "MachineHealthCheck.cluster.x-k8s.io",
		"ClusterResourceSet.addons.cluster.x-k8s.io", "ClusterResourceSetBinding.addons.cluster.x-k8s.io",
		"KubeadmConfig.bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate.bootstrap.cluster.x-k8s.io",
		"KubeadmControlPlane.controlplane.cluster.x-k8s.io",
		"DockerCluster.infrastructure.cluster.x-k8s.io", "DockerMachine.infrastructure.cluster.x-k8s.io",
		"DockerMachineTemplate.infrastructure.cluster.x-k8s.io", "DockerMachinePool.infrastructure.cluster.x-k8s.io":
		return []string{older, newer}
	case "ClusterClass.cluster.x-k8s.io", "KubeadmControlPlaneTemplate.controlplane.cluster.x-k8s.io",
		"DockerClusterTemplate.infrastructure.cluster.x-k8s.io":
		return []string{newer}
	}
	return nil
}

// addUnservedVersions prepends the unserved versions. They cannot be read or written, so any valid schema will do.
func addUnservedVersions(d *apiextensionsv1.CustomResourceDefinition) {
	var unserved []apiextensionsv1.CustomResourceDefinitionVersion
	for _, name := range unservedVersions(schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}) {
		unserved = append(unserved, apiextensionsv1.CustomResourceDefinitionVersion{
			Name:       name,
			Deprecated: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
			},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	d.Spec.Versions = append(unserved, d.Spec.Versions...)
}
