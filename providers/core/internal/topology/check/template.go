package check

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// template validates a reference to a template; path is the parent of templateRef.
func template(ref *clusterv1.ClusterClassTemplateReference, path *field.Path) field.ErrorList {
	path = path.Child("templateRef")
	if !ref.IsDefined() {
		return field.ErrorList{field.Required(path, "a reference to a template is required")}
	}
	var errs field.ErrorList
	if ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the name of the template is required"))
	}
	if kind, ok := strings.CutSuffix(ref.Kind, clusterv1.TemplateSuffix); !ok || kind == "" {
		errs = append(errs, field.Invalid(path.Child("kind"), ref.Kind,
			fmt.Sprintf("must be the kind of a template, which ends in %q", clusterv1.TemplateSuffix)))
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Empty() {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), ref.APIVersion, "must be an API version: <group>/<version>"))
	}
	return errs
}

// compatible reports the differences between two references to templates that prevent Clusters from changing from one to the
// other. Names and versions may differ.
func compatible(old, current *clusterv1.ClusterClassTemplateReference, path *field.Path) field.ErrorList {
	if !old.IsDefined() || !current.IsDefined() {
		return nil
	}
	path = path.Child("templateRef")
	var errs field.ErrorList
	if was, is := old.GroupVersionKind().Group, current.GroupVersionKind().Group; was != is {
		errs = append(errs, field.Forbidden(path.Child("apiVersion"),
			fmt.Sprintf("the group cannot be changed from %q to %q: the objects of Clusters would have to be replaced", was, is)))
	}
	if old.Kind != current.Kind {
		errs = append(errs, field.Forbidden(path.Child("kind"), fmt.Sprintf("the kind cannot be changed from %q to %q: "+
			"the objects of Clusters would have to be replaced", old.Kind, current.Kind)))
	}
	return errs
}

// Metadata validates labels and annotations.
func Metadata(meta *clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
}
