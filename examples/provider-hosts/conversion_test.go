package hosts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hosts "sigs.k8s.io/cluster-api/examples/provider-hosts"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	hostsv1alpha2 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha2"
)

// TestConversion converts in both directions: each version has what its contract reads, and nothing is lost.
func TestConversion(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "c"}
	conditions := []metav1.Condition{{Type: "Ready", Status: "False", Reason: "WaitingForEndpoint", Message: "m"}}
	for _, tc := range []struct {
		reason     string
		older, now client.Object
		empty      func() (older, now client.Object)
	}{
		{
			reason: "a HostCluster",
			older: &hostsv1.HostCluster{
				ObjectMeta: meta,
				Spec:       hostsv1.HostClusterSpec{ControlPlaneEndpoint: clusterv1beta1.APIEndpoint{Host: "h", Port: 6443}},
				Status: hostsv1.HostClusterStatus{
					Ready: true, FailureDomains: clusterv1beta1.FailureDomains{"a": {ControlPlane: true}, "b": {}},
					Conditions: clusterv1beta1.Conditions{{Type: "Ready", Status: "False", Severity: "Warning", Reason: "WaitingForEndpoint", Message: "m"}},
					V1Beta2:    &hostsv1.HostClusterV1Beta2Status{Conditions: conditions},
				},
			},
			now: &hostsv1alpha2.HostCluster{
				ObjectMeta: meta,
				Spec:       hostsv1alpha2.HostClusterSpec{ControlPlaneEndpoint: clusterv1.APIEndpoint{Host: "h", Port: 6443}},
				Status: hostsv1alpha2.HostClusterStatus{
					Initialization: hostsv1.Initialization{Provisioned: true},
					FailureDomains: []clusterv1.FailureDomain{{Name: "a", ControlPlane: ptr.To(true)}, {Name: "b"}},
					Conditions:     conditions,
					Deprecated: hostsv1.WithV1Beta1Conditions(clusterv1.Conditions{
						{Type: "Ready", Status: "False", Severity: "Warning", Reason: "WaitingForEndpoint", Message: "m"},
					}),
				},
			},
			empty: func() (client.Object, client.Object) { return &hostsv1.HostCluster{}, &hostsv1alpha2.HostCluster{} },
		},
		{
			reason: "a template",
			older:  &hostsv1.HostClusterTemplate{ObjectMeta: meta},
			now:    &hostsv1alpha2.HostClusterTemplate{ObjectMeta: meta},
			empty: func() (client.Object, client.Object) {
				return &hostsv1.HostClusterTemplate{}, &hostsv1alpha2.HostClusterTemplate{}
			},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			registry := hosts.NewComponent().Conversions
			older, now := tc.empty()
			for _, c := range []struct{ from, to, want client.Object }{{tc.older, now, tc.now}, {tc.now, older, tc.older}} {
				if err := registry.Convert(t.Context(), c.from, c.to); err != nil {
					t.Fatal(err)
				}
				c.to.GetObjectKind().SetGroupVersionKind(c.want.GetObjectKind().GroupVersionKind())
				if diff := cmp.Diff(c.want, c.to); diff != "" {
					t.Errorf("%T (-want +got):\n%s", c.want, diff)
				}
			}
		})
	}
}
