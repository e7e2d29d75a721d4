package plan

import (
	"bytes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allUnhealthy is the limit of remediation that admission sets where there is none.
const allUnhealthy = "100%"

// keepLimit keeps the default of the limit of a health check that this field manager has applied before: earlier releases applied it
// although neither class nor Cluster have it, and an apply without it would be a write that changes nothing.
func keepLimit(live, desired *unstructured.Unstructured) error {
	path := []string{"spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo"}
	if _, set, _ := unstructured.NestedFieldNoCopy(desired.Object, path...); set || live == nil || !appliesLimit(live) {
		return nil
	}
	if limit, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...); limit != allUnhealthy {
		return nil
	}
	return unstructured.SetNestedField(desired.Object, allUnhealthy, path...)
}

// appliesLimit reports whether the limit is among the applied fields, under its name in either version.
func appliesLimit(live *unstructured.Unstructured) bool {
	for _, e := range live.GetManagedFields() {
		if e.Manager != FieldManager || e.Operation != metav1.ManagedFieldsOperationApply || e.FieldsV1 == nil {
			continue
		}
		raw := e.FieldsV1.GetRawBytes()
		if bytes.Contains(raw, []byte(`"f:unhealthyLessThanOrEqualTo"`)) || bytes.Contains(raw, []byte(`"f:maxUnhealthy"`)) {
			return true
		}
	}
	return false
}
