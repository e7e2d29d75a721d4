package topologyplan

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

const definitionKind = "CustomResourceDefinition"

// defineKinds adds CustomResourceDefinitions of the kinds that objects have or refer to, and of the kinds created from their
// templates, unless they are among the objects. Their schemas accept all fields.
func (w *World) defineKinds(objects []*unstructured.Unstructured) error {
	versions := map[schema.GroupKind][]string{}
	add := func(kind schema.GroupVersionKind) {
		if kind.Group == "" || kind.Version == "" || kind.Kind == "" || !strings.Contains(kind.Group, ".") {
			return
		}
		if all := versions[kind.GroupKind()]; !slices.Contains(all, kind.Version) {
			versions[kind.GroupKind()] = append(all, kind.Version)
		}
	}
	for _, kind := range []string{
		"Cluster", "ClusterClass", "Machine", "MachineSet", "MachineDeployment", "MachinePool", "MachineHealthCheck",
	} {
		add(clusterv1.GroupVersion.WithKind(kind))
	}
	defined := map[string]bool{}
	for _, u := range objects {
		if u.GetKind() == definitionKind {
			defined[u.GetName()] = true
			continue
		}
		forEachReference(u.Object, func(apiVersion, kind string) {
			found := schema.FromAPIVersionAndKind(apiVersion, kind)
			add(found)
			found.Kind = contract.KindOf(kind)
			add(found)
		})
	}
	for kind, all := range versions {
		if defined[contract.CRDName(kind)] {
			continue
		}
		if err := w.PutTyped(definition(kind, all)); err != nil {
			return err
		}
	}
	return nil
}

// forEachReference calls f for every object within value that has the fields of a type.
func forEachReference(value any, f func(apiVersion, kind string)) {
	switch v := value.(type) {
	case map[string]any:
		apiVersion, _ := v["apiVersion"].(string)
		if kind, _ := v["kind"].(string); apiVersion != "" && kind != "" {
			f(apiVersion, kind)
		}
		for _, below := range v {
			forEachReference(below, f)
		}
	case []any:
		for _, below := range v {
			forEachReference(below, f)
		}
	}
}

// Contracts returns the labels that the definition of a kind probably has: v1beta2 of the kinds that this project converts has the contract
// v1beta2. Versions of others do not tell, and have v1beta1.
func Contracts(kind schema.GroupKind, versions []string) map[string]string {
	labels := map[string]string{}
	for _, version := range versions {
		label := contract.V1Beta1.Label()
		if version == clusterv1.GroupVersion.Version && conversion.Shared().Versions(kind) != nil {
			label = contract.V1Beta2.Label()
		}
		labels[label] = strings.TrimPrefix(labels[label]+"_"+version, "_")
	}
	return labels
}

func definition(kind schema.GroupKind, versions []string) *apiextensionsv1.CustomResourceDefinition {
	name := contract.CRDName(kind)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: Contracts(kind, versions)},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind.Kind, Plural: strings.TrimSuffix(name, "."+kind.Group)},
		},
	}
	for _, version := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		})
	}
	return crd
}
