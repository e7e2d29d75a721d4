package v1alpha1

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
)

// TestShapeIsThatOfTheStoredVersion guards what the conversion by apiVersion alone relies on. Struct types that differ
// in a field's name, type or tag are not convertible.
func TestShapeIsThatOfTheStoredVersion(t *testing.T) {
	claim := ipamv1.IPAddressClaimSpec{PoolRef: corev1.TypedLocalObjectReference{Kind: "Pool", Name: "p"}}
	if got := IPAddressClaimSpec(claim); got.PoolRef != claim.PoolRef {
		t.Errorf("poolRef changed: %v", got.PoolRef)
	}
	types := map[string][2]any{
		"IPAddressSpec":        {IPAddressSpec{}, ipamv1.IPAddressSpec{}},
		"IPAddressClaimSpec":   {IPAddressClaimSpec{}, ipamv1.IPAddressClaimSpec{}},
		"IPAddressClaimStatus": {IPAddressClaimStatus{}, ipamv1.IPAddressClaimStatus{}},
	}
	for name, pair := range types {
		old, stored := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		if old.NumField() != stored.NumField() {
			t.Fatalf("%s: %d fields, stored version has %d", name, old.NumField(), stored.NumField())
		}
		for i := range old.NumField() {
			o, s := old.Field(i), stored.Field(i)
			if o.Name != s.Name || o.Type != s.Type || o.Tag != s.Tag {
				t.Errorf("%s: field %s %s %q, stored version has %s %s %q", name, o.Name, o.Type, o.Tag, s.Name, s.Type, s.Tag)
			}
		}
	}
}
