package generate

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// formerVersions lists the versions of a kind that releases up to v1.7 defined and did not serve any more. An API server
// that ever stored one has it in the definition's status.storedVersions, and refuses a definition without it: they are
// what lets a management cluster of those releases be upgraded in place. Kinds that came later have none.
func formerVersions(kind schema.GroupKind) []string {
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

// addFormerVersions puts the former versions in front of those that are served. Nobody can read or write them, so their
// schema only has to be one.
func addFormerVersions(d *apiextensionsv1.CustomResourceDefinition) {
	var former []apiextensionsv1.CustomResourceDefinitionVersion
	for _, name := range formerVersions(schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}) {
		former = append(former, apiextensionsv1.CustomResourceDefinitionVersion{
			Name:       name,
			Deprecated: true,
			Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
			},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	d.Spec.Versions = append(former, d.Spec.Versions...)
}
