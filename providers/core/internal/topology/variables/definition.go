package variables

import (
	"context"
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Builtin is the name of the builtin variable, which contains properties of the Cluster. It is reserved.
const Builtin = "builtin"

const (
	// maxDefinitions is the maximum number of variables that one source defines. A class with more could not be stored.
	maxDefinitions = 10_000
	// maxErrors is the number of errors after which validation ends.
	maxErrors = 10
)

// ValidateDefinitions validates the variables that a class (spec.variables) or an extension defines; path is the path of the
// list. It returns the first errors.
func ValidateDefinitions(ctx context.Context, variables []clusterv1.ClusterClassVariable, path *field.Path) field.ErrorList {
	if len(variables) > maxDefinitions {
		return field.ErrorList{field.TooMany(path, len(variables), maxDefinitions)}
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i := range variables {
		if len(errs) >= maxErrors || ctx.Err() != nil {
			break
		}
		variable, at := &variables[i], path.Index(i)
		if seen[variable.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), variable.Name))
		}
		seen[variable.Name] = true
		errs = append(errs, validateName(variable.Name, at.Child("name"))...)
		metadata, metadataPath := &variable.DeprecatedV1Beta1Metadata, at.Child("deprecatedV1Beta1Metadata")
		errs = append(errs, metav1validation.ValidateLabels(metadata.Labels, metadataPath.Child("labels"))...)
		errs = append(errs, apivalidation.ValidateAnnotations(metadata.Annotations, metadataPath.Child("annotations"))...)
		errs = append(errs, validateSchema(ctx, &variable.Schema.OpenAPIV3Schema, at.Child("schema", "openAPIV3Schema"))...)
	}
	return errs[:min(len(errs), maxErrors)]
}

func validateName(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "the name of the variable is required")}
	case name == Builtin:
		return field.ErrorList{field.Invalid(path, name, fmt.Sprintf("%q is reserved for the builtin variables: choose another name", Builtin))}
	case strings.Contains(name, "."):
		return field.ErrorList{field.Invalid(path, name, `must not contain ".": it separates the fields of a variable in patches`)}
	}
	return nil
}
