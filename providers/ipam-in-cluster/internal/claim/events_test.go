package claim

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
)

func TestChanges(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change func(*ipamv1.IPAddressClaim)
		want   bool
	}{
		{reason: "a condition", change: func(c *ipamv1.IPAddressClaim) {
			condition.Set(c, condition.False(clusterv1.ReadyV1Beta1Condition, clusterv1.ConditionSeverityError, "AllocationFailed", "port 1234"))
		}},
		{reason: "a resync", change: func(c *ipamv1.IPAddressClaim) { c.ResourceVersion = "1" }, want: true},
		{reason: "the address", change: func(c *ipamv1.IPAddressClaim) { c.Status.AddressRef.Name = "" }, want: true},
		{reason: "an annotation", change: func(c *ipamv1.IPAddressClaim) { c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} }, want: true},
		{reason: "a finalizer", change: func(c *ipamv1.IPAddressClaim) { c.Finalizers = nil }, want: true},
	} {
		before := &ipamv1.IPAddressClaim{}
		before.ResourceVersion, before.Finalizers, before.Status.AddressRef.Name = "1", []string{"f"}, "a"
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		tc.change(after)
		if got := changes().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.reason, got, tc.want)
		}
	}
}
