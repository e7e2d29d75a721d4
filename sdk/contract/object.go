package contract

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Object is an object of any provider.
type Object struct {
	*unstructured.Unstructured
	// Contract is the version of the contract that the object follows, which decides where its fields are: see APIVersions.
	Contract Version
}

// flag returns a field that is in status.initialization in version V1Beta2 of the contract, and in the status in V1Beta1; false if absent.
func (o Object) flag(v1beta1, v1beta2 string) (bool, error) {
	value, _, err := field[bool](o, o.flagPath(v1beta1, v1beta2)...)
	return value, err
}

func (o Object) flagPath(v1beta1, v1beta2 string) []string {
	if o.Contract == V1Beta2 {
		return []string{"status", "initialization", v1beta2}
	}
	return []string{"status", v1beta1}
}

// flagField returns the path of the field that flag reads.
func (o Object) flagField(v1beta1, v1beta2 string) string {
	return strings.Join(o.flagPath(v1beta1, v1beta2), ".")
}

// provisioned reports whether infrastructure is complete: status.initialization.provisioned, or status.ready in V1Beta1.
func (o Object) provisioned() (bool, error) { return o.flag("ready", "provisioned") }

// Failure returns status.failureReason and status.failureMessage, which report a terminal failure. V1Beta2 has none: always empty.
func (o Object) Failure() (reason, message string, err error) {
	if o.Contract == V1Beta2 {
		return "", "", nil
	}
	reason, _, err = field[string](o, "status", "failureReason")
	if err != nil {
		return "", "", err
	}
	message, _, err = field[string](o, "status", "failureMessage")
	return reason, message, err
}

// Conditions returns conditions with severities: status.conditions, or status.deprecated.v1beta1.conditions in V1Beta2. If there are none,
// those of V1Beta2 in status.conditions, where False has severity Info.
func (o Object) Conditions() (clusterv1.Conditions, error) {
	if o.Contract != V1Beta2 {
		conditions, _, err := structured[clusterv1.Conditions](o, "status", "conditions")
		return conditions, err
	}
	conditions, found, err := structured[clusterv1.Conditions](o, "status", "deprecated", "v1beta1", "conditions")
	if found || err != nil {
		return conditions, err
	}
	conditions, _, err = structured[clusterv1.Conditions](o, "status", "conditions")
	for i := range conditions {
		if conditions[i].Status == corev1.ConditionFalse {
			conditions[i].Severity = clusterv1.ConditionSeverityInfo
		}
	}
	return conditions, err
}

// ObservedGeneration returns status.observedGeneration, which is not part of the contract: found is false if it is absent, or not a
// number.
func (o Object) ObservedGeneration() (generation int64, found bool) {
	generation, found, err := field[int64](o, "status", "observedGeneration")
	return generation, found && err == nil
}

// metadata returns the labels and annotations at path; zero if absent.
func (o Object) metadata(path ...string) (clusterv1.ObjectMeta, error) {
	meta, _, err := structured[clusterv1.ObjectMeta](o, path...)
	return meta, err
}

// setMetadata replaces labels and annotations at path; empty ones are removed. Other fields there do not change.
func (o Object) setMetadata(meta clusterv1.ObjectMeta, path ...string) error {
	for name, values := range map[string]map[string]string{"labels": meta.Labels, "annotations": meta.Annotations} {
		at := append(slices.Clip(path), name)
		if len(values) == 0 {
			unstructured.RemoveNestedField(o.Object, at...)
			continue
		}
		if err := unstructured.SetNestedStringMap(o.Object, values, at...); err != nil {
			return o.errorf(path, "cannot be written: %w", err)
		}
	}
	return nil
}

func (o Object) set(value any, path ...string) error {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		return o.errorf(path, "cannot be written: %w", err)
	}
	return nil
}

func (o Object) count(path ...string) (*int32, error) {
	value, ok, err := field[int64](o, path...)
	if !ok || err != nil {
		return nil, err
	}
	if value < math.MinInt32 || value > math.MaxInt32 {
		return nil, o.errorf(path, "is %d, which is out of the range of a count", value)
	}
	narrow := int32(value)
	return &narrow, nil
}

func (o Object) errorf(path []string, format string, args ...any) error {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return Violated("%s %s: field %s %w", o.GroupVersionKind().GroupKind(), name, strings.Join(path, "."), fmt.Errorf(format, args...))
}

// lookup returns the value at path without copying it. Null counts as absent, as it does for Go types.
func (o Object) lookup(path ...string) (any, bool, error) {
	var current any = o.Object
	for i, name := range path {
		fields, ok := current.(map[string]any)
		if !ok {
			return nil, false, o.errorf(path[:i], "is a %s, the contract asks for an object", jsonType(current))
		}
		if current = fields[name]; current == nil {
			return nil, false, nil
		}
	}
	return current, true, nil
}

// field returns the scalar at path, and whether it exists.
func field[T bool | string | int64](o Object, path ...string) (T, bool, error) {
	var zero T
	value, ok, err := o.lookup(path...)
	if !ok || err != nil {
		return zero, false, err
	}
	typed, ok := value.(T)
	if !ok {
		return zero, false, o.errorf(path, "is a %s, the contract asks for a %s", jsonType(value), jsonType(zero))
	}
	return typed, true, nil
}

// structured decodes the value at path, and returns whether it exists.
func structured[T any](o Object, path ...string) (T, bool, error) {
	var wrapper struct {
		Value T `json:"value"`
	}
	value, ok, err := o.lookup(path...)
	if !ok || err != nil {
		return wrapper.Value, false, err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"value": value}, &wrapper)
	if err != nil {
		return wrapper.Value, false, o.errorf(path, "is not what the contract asks for: %w", err)
	}
	return wrapper.Value, true, nil
}

func jsonType(value any) string {
	switch value.(type) {
	case bool:
		return "boolean"
	case string:
		return "string"
	case int64:
		return "whole number"
	case float64:
		return "number"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	default:
		return fmt.Sprintf("%T", value)
	}
}

// ViolationError is the error of an object, or a CustomResourceDefinition, that breaks the contract. It lasts until its provider, or the
// user who wrote the object, corrects it.
type ViolationError struct{ err error }

// Violated returns a ViolationError. The text must not contain secrets: conditions report it.
func Violated(format string, args ...any) error { return &ViolationError{fmt.Errorf(format, args...)} }

// Error implements error.
func (v *ViolationError) Error() string { return v.err.Error() }

// Unwrap returns the cause.
func (v *ViolationError) Unwrap() error { return v.err }
