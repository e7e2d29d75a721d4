package check

import (
	"fmt"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// template validates a reference to a template; path is the parent of ref.
func template(t *clusterv1.LocalObjectTemplate, namespace string, path *field.Path) field.ErrorList {
	path = path.Child("ref")
	if t.Ref == nil {
		return field.ErrorList{field.Required(path, "a reference to a template is required")}
	}
	var errs field.ErrorList
	if t.Ref.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), "the name of the template is required"))
	}
	if t.Ref.Namespace != namespace {
		errs = append(errs, field.Invalid(path.Child("namespace"), t.Ref.Namespace, fmt.Sprintf(
			"must be %q: a ClusterClass and its templates must be in the same namespace", namespace)))
	}
	if kind, ok := strings.CutSuffix(t.Ref.Kind, clusterv1.TemplateSuffix); !ok || kind == "" {
		errs = append(errs, field.Invalid(path.Child("kind"), t.Ref.Kind,
			fmt.Sprintf("must be the kind of a template, which ends in %q", clusterv1.TemplateSuffix)))
	}
	if gv, err := schema.ParseGroupVersion(t.Ref.APIVersion); err != nil || gv.Empty() {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), t.Ref.APIVersion, "must be an API version: <group>/<version>"))
	}
	return errs
}

// compatible reports the differences between two references to templates that prevent Clusters from changing from one to the
// other. Names and versions may differ.
func compatible(old, current *clusterv1.LocalObjectTemplate, path *field.Path) field.ErrorList {
	if old.Ref == nil || current.Ref == nil {
		return nil
	}
	path = path.Child("ref")
	var errs field.ErrorList
	if was, is := old.Ref.GroupVersionKind().Group, current.Ref.GroupVersionKind().Group; was != is {
		errs = append(errs, field.Forbidden(path.Child("apiVersion"),
			fmt.Sprintf("the group cannot be changed from %q to %q: the objects of Clusters would have to be replaced", was, is)))
	}
	if old.Ref.Kind != current.Ref.Kind {
		errs = append(errs, field.Forbidden(path.Child("kind"), fmt.Sprintf("the kind cannot be changed from %q to %q: "+
			"the objects of Clusters would have to be replaced", old.Ref.Kind, current.Ref.Kind)))
	}
	if old.Ref.Namespace != current.Ref.Namespace {
		errs = append(errs, field.Forbidden(path.Child("namespace"),
			fmt.Sprintf("the namespace cannot be changed from %q to %q", old.Ref.Namespace, current.Ref.Namespace)))
	}
	return errs
}

// Metadata validates labels and annotations.
func Metadata(meta *clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
}
