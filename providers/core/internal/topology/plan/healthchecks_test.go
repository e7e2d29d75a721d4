package plan

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKeepLimit(t *testing.T) {
	path := []string{"spec", "remediation", "triggerIf", "unhealthyLessThanOrEqualTo"}
	object := func(limit any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		if limit != nil {
			if err := unstructured.SetNestedField(u.Object, limit, path...); err != nil {
				t.Fatal(err)
			}
		}
		return u
	}
	owned := func(u *unstructured.Unstructured, manager, fields string) *unstructured.Unstructured {
		u.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "manager", Operation: "Update"},
			{Manager: manager, Operation: "Apply", FieldsV1: metav1.NewFieldsV1(fields)},
		})
		return u
	}
	const newer, older = `{"f:spec":{"f:remediation":{"f:triggerIf":{"f:unhealthyLessThanOrEqualTo":{}}}}}`, `{"f:spec":{"f:maxUnhealthy":{}}}`
	tests := []struct {
		reason     string
		live, want *unstructured.Unstructured
		desired    any
	}{
		{"a new check has what its user set", nil, object(nil), nil},
		{"a check of v1.14 has no limit", owned(object(nil), FieldManager, `{"f:spec":{"f:checks":{}}}`), object(nil), nil},
		{"one that admission set is not applied", owned(object("100%"), FieldManager, `{"f:spec":{"f:checks":{}}}`), object(nil), nil},
		{"one that was applied is kept", owned(object("100%"), FieldManager, newer), object("100%"), nil},
		{"v1.7 applied it under another name", owned(object("100%"), FieldManager, older), object("100%"), nil},
		{"one that a user applied belongs to the user", owned(object("100%"), "kubectl", newer), object(nil), nil},
		{"a limit that its user removed is removed", owned(object("40%"), FieldManager, newer), object(nil), nil},
		{"a limit of the user is applied", owned(object("100%"), FieldManager, newer), object("40%"), "40%"},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			got := object(tc.desired)
			if err := keepLimit(tc.live, got); err != nil {
				t.Fatal(err)
			}
			is, _, _ := unstructured.NestedFieldNoCopy(got.Object, path...)
			want, _, _ := unstructured.NestedFieldNoCopy(tc.want.Object, path...)
			if is != want {
				t.Errorf("the limit is %v, want %v", is, want)
			}
		})
	}
}
