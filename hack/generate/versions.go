package generate

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// hubVersion is the version that stores objects and to which all others are converted, of the kinds that have it.
const hubVersion = "v1beta2"

// chooseVersions makes v1beta2 the version that stores objects. The one before is deprecated, and the manager converts between them:
// release builds replace names and namespaces of services. Kinds without v1beta2 stay as they are.
func chooseVersions(d *apiextensionsv1.CustomResourceDefinition) {
	if !hasVersion(d, hubVersion) {
		return
	}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		v.Deprecated = v.Deprecated || (v.Storage && v.Name != hubVersion)
		v.Storage = v.Name == hubVersion
	}
	if len(d.Spec.Versions) == 1 {
		return
	}
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{Name: "webhook-service", Namespace: "system", Path: ptr.To("/convert")},
			},
		},
	}
}

// hasVersion reports whether a definition has a version.
func hasVersion(d *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
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
