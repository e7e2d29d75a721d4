package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ClusterClassVariable defines a variable that Clusters of a class can set.
type ClusterClassVariable struct {
	// name is the name of the variable: unique in the class, without dots, and not "builtin".
	Name string `json:"name"`

	// required is true if a Cluster must have a value for the variable. The schema's required lists are about the fields
	// of a value; this is about the whole value. When unset, it is false.
	// +optional
	Required bool `json:"required"`

	// metadata is for tools, such as forms that are generated from the variables.
	// +optional
	Metadata ClusterClassVariableMetadata `json:"metadata,omitempty"`

	// schema is the schema of values.
	Schema VariableSchema `json:"schema"`
}

// ClusterClassVariableMetadata is the metadata of a variable.
type ClusterClassVariableMetadata struct {
	// labels are for grouping and finding variables.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations hold additional data of tools.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// VariableSchema holds the schema of a variable.
type VariableSchema struct {
	// openAPIV3Schema is a structural OpenAPI v3 schema, limited to the fields of this type.
	OpenAPIV3Schema JSONSchemaProps `json:"openAPIV3Schema"`
}

// JSONSchemaProps is the subset of OpenAPI v3 schemas that variables can use. The meaning of each field is that of the
// keyword of the same name.
type JSONSchemaProps struct {
	// description is the purpose of the value.
	// +optional
	Description string `json:"description,omitempty"`

	// example is a valid value, to show in documentation and forms.
	// +optional
	Example *apiextensionsv1.JSON `json:"example,omitempty"`

	// type is one of object, array, string, number, integer, boolean. Only schemas that are combined with others, or are
	// int-or-string, have none.
	// +optional
	Type string `json:"type,omitempty"`

	// properties are the schemas of the fields of an object.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Properties map[string]JSONSchemaProps `json:"properties,omitempty"`

	// additionalProperties is the schema of every value of an object used as a map. Excludes properties.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	AdditionalProperties *JSONSchemaProps `json:"additionalProperties,omitempty"`

	// required lists the fields that an object must have.
	// +optional
	Required []string `json:"required,omitempty"`

	// items is the schema of the elements of an array.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Items *JSONSchemaProps `json:"items,omitempty"`

	// maxProperties is the maximum number of fields of an object.
	// +optional
	MaxProperties *int64 `json:"maxProperties,omitempty"`

	// minProperties is the minimum number of fields of an object.
	// +optional
	MinProperties *int64 `json:"minProperties,omitempty"`

	// maxItems is the maximum number of elements of an array.
	// +optional
	MaxItems *int64 `json:"maxItems,omitempty"`

	// minItems is the minimum number of elements of an array.
	// +optional
	MinItems *int64 `json:"minItems,omitempty"`

	// uniqueItems true forbids equal elements in an array.
	// +optional
	UniqueItems bool `json:"uniqueItems,omitempty"`

	// format is an OpenAPI v3 format of a string, such as ipv4, date-time or uri. Unknown formats are ignored.
	// +optional
	Format string `json:"format,omitempty"`

	// maxLength is the maximum length of a string, in characters.
	// +optional
	MaxLength *int64 `json:"maxLength,omitempty"`

	// minLength is the minimum length of a string, in characters.
	// +optional
	MinLength *int64 `json:"minLength,omitempty"`

	// pattern is a regular expression that must match somewhere in a string.
	// +optional
	Pattern string `json:"pattern,omitempty"`

	// maximum is the maximum of a number or integer.
	// +optional
	Maximum *int64 `json:"maximum,omitempty"`

	// exclusiveMaximum true forbids the value maximum itself.
	// +optional
	ExclusiveMaximum bool `json:"exclusiveMaximum,omitempty"`

	// minimum is the minimum of a number or integer.
	// +optional
	Minimum *int64 `json:"minimum,omitempty"`

	// exclusiveMinimum true forbids the value minimum itself.
	// +optional
	ExclusiveMinimum bool `json:"exclusiveMinimum,omitempty"`

	// x-kubernetes-preserve-unknown-fields true allows fields that are not in the schema.
	// +optional
	XPreserveUnknownFields bool `json:"x-kubernetes-preserve-unknown-fields,omitempty"`

	// enum lists all allowed values.
	// +optional
	Enum []apiextensionsv1.JSON `json:"enum,omitempty"`

	// default is the default value. The default of a field inside an object applies only where that object is present.
	// +optional
	Default *apiextensionsv1.JSON `json:"default,omitempty"`

	// x-kubernetes-validations are CEL rules. They may compare with the value before a change (oldSelf); their cost is
	// limited.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=rule
	XValidations []ValidationRule `json:"x-kubernetes-validations,omitempty"`

	// x-metadata is for tools, such as forms that are generated from the variables.
	// +optional
	XMetadata *VariableSchemaMetadata `json:"x-metadata,omitempty"`

	// x-kubernetes-int-or-string true means that the value is an integer or a string.
	// +optional
	XIntOrString bool `json:"x-kubernetes-int-or-string,omitempty"`

	// allOf are schemas that the value must all match.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	AllOf []JSONSchemaProps `json:"allOf,omitempty"`

	// oneOf are schemas of which the value must match exactly one.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	OneOf []JSONSchemaProps `json:"oneOf,omitempty"`

	// anyOf are schemas of which the value must match at least one.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	AnyOf []JSONSchemaProps `json:"anyOf,omitempty"`

	// not is a schema that the value must not match.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Not *JSONSchemaProps `json:"not,omitempty"`
}

// VariableSchemaMetadata is the metadata of a variable or of a part of it.
type VariableSchemaMetadata struct {
	// labels are for grouping and finding variables.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations hold additional data of tools.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ValidationRule is a CEL rule for a value.
type ValidationRule = clusterv1beta2.ValidationRule

// FieldValueErrorReason is a class of errors of fields.
type FieldValueErrorReason = clusterv1beta2.FieldValueErrorReason

const (
	// FieldValueRequired means that a required value is absent.
	FieldValueRequired = clusterv1beta2.FieldValueRequired
	// FieldValueDuplicate means that a value is in use already.
	FieldValueDuplicate = clusterv1beta2.FieldValueDuplicate
	// FieldValueInvalid means that a value is malformed. It is the default.
	FieldValueInvalid = clusterv1beta2.FieldValueInvalid
	// FieldValueForbidden means that a value is not allowed in this situation.
	FieldValueForbidden = clusterv1beta2.FieldValueForbidden
)
