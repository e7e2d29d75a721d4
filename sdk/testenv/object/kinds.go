package object

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Reference returns a reference to an object of a provider.
func Reference(kind schema.GroupVersionKind, name string) *clusterv1.ContractVersionedObjectReference {
	return &clusterv1.ContractVersionedObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: name}
}

// CRD returns the CustomResourceDefinition of a provider's kind, with any fields and a status subresource. Its label declares that kind's
// version and the older ones support the contract.
func CRD(kind schema.GroupVersionKind, older ...string) *apiextensionsv1.CustomResourceDefinition {
	name := contract.CRDName(kind.GroupKind())
	plural, _, _ := strings.Cut(name, ".")
	out := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: plural, Singular: strings.ToLower(kind.Kind), Kind: kind.Kind, ListKind: kind.Kind + "List",
			},
		},
	}
	versions := append(slices.Clone(older), kind.Version)
	out.Labels = map[string]string{contract.V1Beta1.Label(): strings.Join(versions, "_")}
	for _, version := range versions {
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: version == kind.Version,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return out
}
