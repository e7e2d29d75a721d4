package generate

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// addAlikeVersions prepends served versions with the schema of the first one. Nothing has to be converted, because the schema has
// the fields of both. The copies have no descriptions: kubectl apply stores the whole definition in an annotation, at most 256 KiB.
func addAlikeVersions(d *apiextensionsv1.CustomResourceDefinition) {
	if d.Spec.Group != "operator.cluster.x-k8s.io" || len(d.Spec.Versions) == 0 {
		return
	}
	older := *d.Spec.Versions[0].DeepCopy()
	older.Name, older.Storage = "v1alpha1", false
	eachSchema(older.Schema.OpenAPIV3Schema, func(s *apiextensionsv1.JSONSchemaProps) { s.Description = "" })
	d.Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{older}, d.Spec.Versions...)
}
