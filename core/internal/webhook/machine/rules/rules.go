// Package rules holds the defaults and rules that Machines share with the kinds that make Machines from a
// template. What only one kind has is in that kind's webhook package.
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

// kubernetesVersion is what the API accepts as a version: looser than semantic versions after the patch.
var kubernetesVersion = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_\.+]*)?$`)

// Old is what the request in ctx is to replace; nil if it creates, or if there is no request.
func Old[T any](ctx context.Context) (*T, error) {
	req, err := admission.RequestFromContext(ctx)
	if err != nil || len(req.OldObject.Raw) == 0 {
		return nil, nil // without a request there is nothing to replace
	}
	old := new(T)
	if err := json.Unmarshal(req.OldObject.Raw, old); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decoding the old object: %v", err))
	}
	return old, nil
}

// SetLabel sets a label in a map that may be nil.
func SetLabel(in *map[string]string, key, value string) {
	if *in == nil {
		*in = map[string]string{}
	}
	(*in)[key] = value
}

// DefaultVersion puts the "v" in front of a version that lacks it.
func DefaultVersion(version *string) {
	if version != nil && *version != "" && !strings.HasPrefix(*version, "v") {
		*version = "v" + *version
	}
}

// Version reports a Kubernetes version that is none; nil is fine.
func Version(version *string, path *field.Path) field.ErrorList {
	if version == nil || kubernetesVersion.MatchString(*version) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *version, `must be a Kubernetes version with a leading "v", such as v1.30.2`)}
}

// ClusterName reports a change of spec.clusterName. Old is empty when the object is created.
func ClusterName(old, current string) field.ErrorList {
	if old == "" || old == current {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "clusterName"), "cannot be changed: make a new object for the other Cluster")}
}

// Selector reports a selector that is none, or that would not find what is made from a template with these
// labels.
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

// Namespace reports a reference into another namespace than that of the object that has it. None is fine.
func Namespace(ref *corev1.ObjectReference, namespace string, path *field.Path) field.ErrorList {
	if ref == nil || ref.Namespace == "" || ref.Namespace == namespace {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("namespace"), ref.Namespace, fmt.Sprintf("must be %q, the namespace of the object that refers to it", namespace))}
}

// Invalid is the error for an object of this kind of the core group; nil without errors.
func Invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}
