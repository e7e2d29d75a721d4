package generate

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// formerVersions lists the versions of a kind that releases up to v1.7 defined and did not serve any more. An API server
// that ever stored one has it in the definition's status.storedVersions, and refuses a definition without it: they are
// what lets a management cluster of those releases be upgraded in place.
func formerVersions(group, kind string) []string {
	const older, newer = "v1alpha3", "v1alpha4"
	switch group {
	case "cluster.x-k8s.io", "addons.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io":
	case "infrastructure.cluster.x-k8s.io":
		if !slices.Contains([]string{
			"DockerCluster", "DockerClusterTemplate", "DockerMachine", "DockerMachineTemplate", "DockerMachinePool",
		}, kind) {
			return nil
		}
	default:
		return nil
	}
	switch kind {
	case "ClusterClass", "KubeadmControlPlaneTemplate", "DockerClusterTemplate": // they came with v1alpha4
		return []string{newer}
	case "DockerMachinePoolTemplate":
		return nil
	}
	return []string{older, newer}
}

// addFormerVersions puts the former versions in front of those that are served. Nobody can read or write them, so their
// schema only has to be one.
func addFormerVersions(d *apiextensionsv1.CustomResourceDefinition) {
	var former []apiextensionsv1.CustomResourceDefinitionVersion
	for _, name := range formerVersions(d.Spec.Group, d.Spec.Names.Kind) {
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
