// Rules of a single kind belong to that kind's webhook package.
package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// kubernetesVersion matches the versions that the API accepts. After the patch version it is less strict than semantic versions.
var kubernetesVersion = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_\.+]*)?$`)

// oldObject returns the old object of the request in ctx; nil for a creation, or if there is no request.
func oldObject[T any](ctx context.Context) (*T, error) {
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

// setLabel sets a label in a map, which may be nil.
func setLabel(in *map[string]string, key, value string) {
	if *in == nil {
		*in = map[string]string{}
	}
	(*in)[key] = value
}

// defaultVersion adds a leading "v" to a version that has none.
func defaultVersion(version *string) {
	if *version != "" && !strings.HasPrefix(*version, "v") {
		*version = "v" + *version
	}
}

func defaultInt32(p **int32, value int32) {
	if *p == nil {
		*p = &value
	}
}

// validateVersion reports an invalid Kubernetes version; none is valid.
func validateVersion(version string, path *field.Path) field.ErrorList {
	if version == "" || kubernetesVersion.MatchString(version) {
		return nil
	}
	return field.ErrorList{invalidVersion(version, path)}
}

func invalidVersion(version string, path *field.Path) *field.Error {
	return field.Invalid(path, version, `must be a Kubernetes version with a leading "v", such as v1.30.2`)
}

// validateClusterName reports a change of spec.clusterName. Old is empty if the object is being created.
func validateClusterName(old, current string) field.ErrorList {
	if old == "" || old == current {
		return nil
	}
	return field.ErrorList{
		field.Forbidden(field.NewPath("spec", "clusterName"), "cannot be changed: create a new object for the other Cluster"),
	}
}

// validateSelector reports a selector that is invalid or does not match the labels of the template.
func validateSelector(selector *metav1.LabelSelector, template map[string]string) field.ErrorList {
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

// invalid returns the errors as one for an object of a kind of the core group; nil if there are none.
func invalid(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(clusterv1.GroupVersion.WithKind(kind).GroupKind(), name, errs)
}

// defaultReplicas returns the default of spec.replicas. It keeps a requested number. Otherwise, if annotations set both limits of the
// cluster autoscaler, it keeps the old number within these limits, and starts a new object at the lower limit. In all other cases
// it returns 1. Old is nil if there is no old number.
func defaultReplicas(requested, old *int32, annotations map[string]string) (int32, error) {
	if requested != nil {
		return *requested, nil
	}
	least, hasLeast := annotations[clusterv1.AutoscalerMinSizeAnnotation]
	most, hasMost := annotations[clusterv1.AutoscalerMaxSizeAnnotation]
	if !hasLeast || !hasMost {
		return 1, nil
	}
	lower, err := autoscalerSize(clusterv1.AutoscalerMinSizeAnnotation, least)
	if err != nil {
		return 0, err
	}
	upper, err := autoscalerSize(clusterv1.AutoscalerMaxSizeAnnotation, most)
	if err != nil {
		return 0, err
	}
	switch {
	case old == nil || *old < lower:
		return lower, nil
	case *old > upper:
		return upper, nil
	}
	return *old, nil
}

func autoscalerSize(annotation, value string) (int32, error) {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("cannot default spec.replicas: annotation %s is %q, must be an integer", annotation, value))
	}
	return int32(n), nil
}
