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

// template reports what is wrong with the reference to a template; path is that of the object with ref.
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
			"must be %q: a ClusterClass and its templates are in the same namespace", namespace)))
	}
	if kind, ok := strings.CutSuffix(t.Ref.Kind, clusterv1.TemplateSuffix); !ok || kind == "" {
		errs = append(errs, field.Invalid(path.Child("kind"), t.Ref.Kind, fmt.Sprintf("must be the kind of a template, which ends in %q", clusterv1.TemplateSuffix)))
	}
	if gv, err := schema.ParseGroupVersion(t.Ref.APIVersion); err != nil || gv.Empty() {
		errs = append(errs, field.Invalid(path.Child("apiVersion"), t.Ref.APIVersion, "must be an API version: <group>/<version>"))
	}
	return errs
}

// compatible reports what differs between two references so that Clusters cannot go from one to the other.
// Names may differ and so may versions.
func compatible(old, current *clusterv1.LocalObjectTemplate, path *field.Path) field.ErrorList {
	if old.Ref == nil || current.Ref == nil {
		return nil
	}
	path = path.Child("ref")
	var errs field.ErrorList
	if was, is := old.Ref.GroupVersionKind().Group, current.Ref.GroupVersionKind().Group; was != is {
		errs = append(errs, field.Forbidden(path.Child("apiVersion"), fmt.Sprintf("the group cannot change from %q to %q: Clusters would need other objects", was, is)))
	}
	if old.Ref.Kind != current.Ref.Kind {
		errs = append(errs, field.Forbidden(path.Child("kind"), fmt.Sprintf("the kind cannot change from %q to %q: Clusters would need other objects", old.Ref.Kind, current.Ref.Kind)))
	}
	if old.Ref.Namespace != current.Ref.Namespace {
		errs = append(errs, field.Forbidden(path.Child("namespace"), fmt.Sprintf("the namespace cannot change from %q to %q", old.Ref.Namespace, current.Ref.Namespace)))
	}
	return errs
}

// Metadata reports labels and annotations that Kubernetes would refuse on an object.
func Metadata(meta *clusterv1.ObjectMeta, path *field.Path) field.ErrorList {
	errs := metav1validation.ValidateLabels(meta.Labels, path.Child("labels"))
	return append(errs, apivalidation.ValidateAnnotations(meta.Annotations, path.Child("annotations"))...)
}
