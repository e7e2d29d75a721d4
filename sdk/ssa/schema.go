package ssa

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// references is the prefix of references within a schema.
const references = "#/components/schemas/"

// kindSchema is the schema of one version of a kind, in the form that comparisons need. It is
// immutable.
type kindSchema struct {
	kind runtimeschema.GroupVersionKind
	// mergeable defines how lists and maps merge, and which fields exist.
	mergeable typed.ParseableType
	// structural has the defaults, and defines which fields may be null.
	structural *schema.Structural
	// embedding means that objects contain whole objects.
	embedding bool
	// unowned are the fields of an apply configuration that have no owner.
	unowned *fieldpath.Set
	// statusApart means that status is a subresource, which an apply to the object does not change.
	statusApart bool
}

// newKindSchema returns the schema of one version of a CustomResourceDefinition.
func newKindSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (*kindSchema, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return nil, fmt.Errorf("CustomResourceDefinition %s has no version %s", crd.Name, version)
	}
	v := crd.Spec.Versions[i]
	structural, embedding, err := structuralOf(v)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: version %s: reading the schema: %w", crd.Name, version, err)
	}
	models := metadataModels()
	models[crd.Spec.Names.Kind] = modelOf(structural)
	mergeable, err := schemaconv.ToSchemaFromOpenAPI(models, crd.Spec.PreserveUnknownFields)
	if err != nil {
		return nil, fmt.Errorf("CustomResourceDefinition %s: version %s: reading the schema for merging: %w", crd.Name, version, err)
	}
	var parser typed.Parser
	parser.Schema.Types = mergeable.Types
	return &kindSchema{
		kind:        runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind},
		mergeable:   parser.Type(crd.Spec.Names.Kind),
		structural:  structural,
		embedding:   embedding,
		unowned:     identity(),
		statusApart: v.Subresources != nil && v.Subresources.Status != nil,
	}, nil
}

// structuralOf returns the structural schema of v without documentation and validation, which is most of its size, and
// whether objects contain whole objects.
func structuralOf(v apiextensionsv1.CustomResourceDefinitionVersion) (structural *schema.Structural, embedding bool, err error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, false, errors.New("it has none")
	}
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema,
		internal, nil); err != nil {
		return nil, false, err
	}
	structural, err = schema.NewStructural(internal)
	if err != nil {
		return nil, false, err
	}
	structural = structural.DeepCopy()
	slim := schema.Visitor{Structural: func(s *schema.Structural) bool {
		s.Generic.Description, s.Generic.Title, s.Generic.ExternalDocs, s.Generic.Example = "", "", nil, schema.JSON{}
		embedding = embedding || s.XEmbeddedResource
		s.ValidationExtensions = schema.ValidationExtensions{}
		if s.ValueValidation != nil {
			s.ValueValidation = &schema.ValueValidation{Format: s.ValueValidation.Format}
		}
		return true
	}}
	slim.Visit(structural)
	return structural, embedding, nil
}

// modelOf returns the OpenAPI schema of a kind, including the fields of all objects, which definitions omit.
func modelOf(structural *schema.Structural) *spec.Schema {
	model := structural.ToKubeOpenAPI()
	addObjectFields(model)
	addEmbeddedObjects(model)
	return model
}

func addObjectFields(model *spec.Schema) {
	model.SetProperty("apiVersion", *spec.StringProperty())
	model.SetProperty("kind", *spec.StringProperty())
	model.SetProperty("metadata", *spec.RefSchema(references + metav1.ObjectMeta{}.OpenAPIModelName()))
}

// addEmbeddedObjects does for objects within an object what addObjectFields does for the whole.
func addEmbeddedObjects(model *spec.Schema) {
	if model == nil {
		return
	}
	for name, property := range model.Properties {
		addEmbeddedObjects(&property)
		model.Properties[name] = property
	}
	if model.Items != nil {
		addEmbeddedObjects(model.Items.Schema)
	}
	if model.AdditionalProperties != nil {
		addEmbeddedObjects(model.AdditionalProperties.Schema)
	}
	if embedded, ok := model.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embedded {
		addObjectFields(model)
	}
}

// metadataModels returns the OpenAPI schemas of metadata and of its fields.
func metadataModels() map[string]*spec.Schema {
	all := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef(references + name) })
	models := map[string]*spec.Schema{}
	addModel(models, all, metav1.ObjectMeta{}.OpenAPIModelName())
	return models
}

func addModel(models map[string]*spec.Schema, all map[string]common.OpenAPIDefinition, name string) {
	if models[name] != nil {
		return
	}
	definition := all[name]
	models[name] = &definition.Schema
	for _, dependency := range definition.Dependencies {
		addModel(models, all, dependency)
	}
}
