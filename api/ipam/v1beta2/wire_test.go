package v1beta2

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestEncoding shows that a prefix of 0 bits is kept, and that unset fields are not written.
func TestEncoding(t *testing.T) {
	zero := int32(0)
	tests := []struct {
		reason string
		object runtime.Object
		want   string
	}{
		{
			reason: "the prefix of the whole address space has 0 bits",
			object: &IPAddress{Spec: IPAddressSpec{Address: "::1", Prefix: &zero}},
			want:   `{"metadata":{},"spec":{"address":"::1","prefix":0}}`,
		},
		{
			reason: "a claim without an address has no reference, because the name of a reference is required",
			object: &IPAddressClaim{Spec: IPAddressClaimSpec{ClusterName: "c", PoolRef: IPPoolReference{Name: "p", Kind: "Pool", APIGroup: "g.io"}}},
			want:   `{"metadata":{},"spec":{"clusterName":"c","poolRef":{"name":"p","kind":"Pool","apiGroup":"g.io"}}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			data, err := json.Marshal(tt.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(data)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemeKnowsEveryKind(t *testing.T) {
	s := runtime.NewScheme()
	if err := AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{IPAddressKind, IPAddressClaimKind, IPAddressKind + "List", IPAddressClaimKind + "List"} {
		if _, err := s.New(GroupVersion.WithKind(kind)); err != nil {
			t.Errorf("kind %s: %v", kind, err)
		}
	}
}

func TestConditions(t *testing.T) {
	c := &IPAddressClaim{}
	want := []metav1.Condition{{Type: IPAddressClaimReadyCondition, Status: "False", Reason: IPAddressClaimReadyPoolExhaustedReason}}
	wantOld := clusterv1.Conditions{{Type: "Ready", Status: "False"}}
	c.SetConditions(want)
	c.SetV1Beta1Conditions(wantOld)
	if diff := cmp.Diff(want, c.GetConditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantOld, c.GetV1Beta1Conditions()); diff != "" {
		t.Errorf("conditions of v1beta1 (-want +got):\n%s", diff)
	}
}
