// Package rules has the defaults and validation rules that Machines share with the kinds that create Machines from a template.
// Rules of a single kind belong to that kind's webhook package.
package rules

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// kubernetesVersion matches the versions that the API accepts. After the patch version it is less strict than semantic versions.
var kubernetesVersion = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_\.+]*)?$`)

// Old returns the old object of the request in ctx; nil for a creation, or if there is no request.
func Old[T any](ctx context.Context) (*T, error) {
	req, err := admission.RequestFromContext(ctx)
	if err != nil || len(req.OldObject.Raw) == 0 {
		return nil, nil
	}
	old := new(T)
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decoding the old object: %v", err))
	}
	return old, nil
}

// SetLabel sets a label in a map, which may be nil.
func SetLabel(in *map[string]string, key, value string) {
	if *in == nil {
		*in = map[string]string{}
	}
	(*in)[key] = value
}

// DefaultVersion adds a leading "v" to a version that has none.
func DefaultVersion(version *string) {
	if version != nil && *version != "" && !strings.HasPrefix(*version, "v") {
		*version = "v" + *version
	}
}

// Version reports an invalid Kubernetes version; nil is valid.
func Version(version *string, path *field.Path) field.ErrorList {
	if version == nil || kubernetesVersion.MatchString(*version) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *version, `must be a Kubernetes version with a leading "v", such as v1.30.2`)}
}

// ClusterName reports a change of spec.clusterName. Old is empty if the object is being created.
func ClusterName(old, current string) field.ErrorList {
	if old == "" || old == current {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "clusterName"), "cannot be changed: create a new object for the other Cluster")}
}

// Selector reports a selector that is invalid or does not match the labels of the template.
func Selector(selector *metav1.LabelSelector, template map[string]string) field.ErrorList {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "selector"), selector, err.Error())}
	}
	if parsed.Matches(labels.Set(template)) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), template,
		fmt.Sprintf("must match spec.selector %q", parsed.String()))}
}

// Namespace reports a reference to another namespace than that of the referring object. No namespace is valid.
func Namespace(ref *corev1.ObjectReference, namespace string, path *field.Path) field.ErrorList {
	if ref == nil || ref.Namespace == "" || ref.Namespace == namespace {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("namespace"), ref.Namespace, fmt.Sprintf("must be %q, the namespace of the object that refers to it", namespace))}
}

// Invalid returns the errors as one for an object of a kind of the core group; nil if there are none.
func Invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}
