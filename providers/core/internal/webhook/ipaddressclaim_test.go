package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
)

func claimOf(group, kind, name string) *ipamv1.IPAddressClaim {
	return &ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"},
		Spec:       ipamv1.IPAddressClaimSpec{PoolRef: ipamv1.IPPoolReference{APIGroup: group, Kind: kind, Name: name}},
	}
}

func TestIPAddressClaimValidate(t *testing.T) {
	const prefix = `IPAddressClaim.ipam.cluster.x-k8s.io "c" is invalid: `
	finalized := claimOf("", "K", "p")
	finalized.Finalizers = []string{"f"}
	for _, tc := range []struct {
		reason     string
		old, claim *ipamv1.IPAddressClaim
		want       string
	}{
		{reason: "a complete reference", claim: claimOf("g", "K", "p")},
		{reason: "the core group has no pools", claim: claimOf("", "K", "p"), want: prefix + "spec.poolRef.apiGroup: Required value: must be the API group of the pool, such as ipam.cluster.x-k8s.io"},
		{reason: "no kind", claim: claimOf("g", "", "p"), want: prefix + "spec.poolRef.kind: Required value: must be the kind of the pool, such as InClusterIPPool"},
		{reason: "no name", claim: claimOf("g", "K", ""), want: prefix + "spec.poolRef.name: Required value: must be the name of the pool"},
		{reason: "another pool", old: claimOf("g", "K", "p"), claim: claimOf("g", "K", "q"), want: prefix + "spec: Forbidden: cannot be changed: create another IPAddressClaim"},
		{reason: "metadata of an invalid claim can change", old: claimOf("", "K", "p"), claim: finalized},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := claimValidator().ValidateCreate(t.Context(), tc.claim)
			if tc.old != nil {
				_, err = claimValidator().ValidateUpdate(t.Context(), tc.old, tc.claim)
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
