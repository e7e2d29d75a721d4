package webhook

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// pool returns a pool with addresses.
func pool(addresses ...string) *inclusterv1.InClusterIPPool {
	return &inclusterv1.InClusterIPPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}, Spec: inclusterv1.InClusterIPPoolSpec{Addresses: addresses, Prefix: 24},
	}
}

// cached returns a cache with IPAddresses of the pool, and one of another pool.
func cached(t *testing.T, addresses ...string) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	testenv.Must(t, ipamv1.AddToScheme(s))
	b := fake.NewClientBuilder().WithScheme(s)
	for _, i := range poolref.Indexes() {
		b.WithIndex(i.Object, i.Field, i.Values)
	}
	key, _ := poolref.Of("n", poolref.Key{Kind: inclusterv1.InClusterIPPoolKind}.Reference())
	for i, a := range addresses {
		key.Name = "p"
		if i == 0 {
			key.Name = "other"
		}
		b.WithObjects(&ipamv1.IPAddress{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("a-%d", i)}, Spec: ipamv1.IPAddressSpec{PoolRef: key.Reference(), Address: a},
		})
	}
	return b.Build()
}

func TestUpdate(t *testing.T) {
	const prefix = `InClusterIPPool.ipam.cluster.x-k8s.io "p" is invalid: `
	reserved := pool("10.0.0.1-10.0.0.20")
	reserved.Status.Reservations = &inclusterv1.Reservations{Items: []inclusterv1.Reservation{{Address: "10.0.0.15"}}}
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprintf("10.0.0.%d", 15-i))
	}
	finalized := pool("none")
	finalized.Finalizers = []string{"f"}
	for _, tc := range []struct {
		reason    string
		old, new  *inclusterv1.InClusterIPPool
		allocated []string
		want      string
	}{
		{reason: "addresses that are not in use", old: pool("10.0.0.1-10.0.0.20"), new: pool("10.0.0.1-10.0.0.5"), allocated: []string{"10.0.0.9", "10.0.0.5"}},
		{
			reason: "addresses in use", old: pool("10.0.0.1-10.0.0.20"), new: pool("10.0.0.1-10.0.0.5"), allocated: []string{"", "10.0.0.10", "10.0.0.6", "10.0.0.5"},
			want: prefix + "spec: Forbidden: addresses in use cannot be removed: 10.0.0.6, 10.0.0.10: delete their IPAddressClaims first",
		},
		{
			reason: "reserved addresses are in use", old: reserved, new: pool("10.0.0.1"),
			want: prefix + "spec: Forbidden: addresses in use cannot be removed: 10.0.0.15: delete their IPAddressClaims first",
		},
		{
			reason: "the error is bounded", old: pool("10.0.0.1-10.0.0.20"), new: pool("10.0.0.15"), allocated: many,
			want: prefix + "spec: Forbidden: addresses in use cannot be removed: 10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6, 10.0.0.7, 10.0.0.8, 10.0.0.9, 10.0.0.10, and 4 more: delete their IPAddressClaims first",
		},
		{reason: "addresses that were out of range before", old: pool("10.0.0.1"), new: pool("10.0.0.2"), allocated: []string{"", "10.0.0.9"}},
		{reason: "an invalid pool can be corrected", old: pool("none"), new: pool("10.0.0.2")},
		{reason: "metadata of an invalid pool can change", old: pool("none"), new: finalized},
		{
			reason: "an invalid address", old: pool("10.0.0.1"), new: pool("10.0.0.1", "10.0.0.0/99"),
			want: prefix + `spec.addresses[1]: Invalid value: "10.0.0.0/99": must be an address such as 10.0.0.5, a range such as 10.0.0.10-10.0.0.50, or a CIDR block such as 10.0.1.0/24`,
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			v := validator[*inclusterv1.InClusterIPPool]{kind: inclusterv1.InClusterIPPoolKind, cached: cached(t, tc.allocated...)}
			_, err := v.ValidateUpdate(t.Context(), tc.old, tc.new)
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

// Numbers are rejected with their field's name.
func TestNumbers(t *testing.T) {
	table := map[string]object.Number{}
	for _, kind := range []string{"InClusterIPPool", "GlobalInClusterIPPool"} {
		table[kind+".prefix"] = object.Number{Rejected: []any{-1, 33, math.MinInt64, math.MaxInt64}, Accepted: []any{24, 32}}
	}
	object.CheckNumbers(t, table, nil, map[string]object.Numbered{
		"InClusterIPPool": {New: func() any { return pool("10.0.0.0/24") }, Validate: func(o any) field.ErrorList {
			_, err := validator[*inclusterv1.InClusterIPPool]{}.ValidateCreate(t.Context(), o.(*inclusterv1.InClusterIPPool))
			return object.FieldErrors(err)
		}},
		"GlobalInClusterIPPool": {
			New: func() any { return &inclusterv1.GlobalInClusterIPPool{Spec: pool("10.0.0.0/24").Spec} },
			Validate: func(o any) field.ErrorList {
				_, err := validator[*inclusterv1.GlobalInClusterIPPool]{}.ValidateCreate(t.Context(), o.(*inclusterv1.GlobalInClusterIPPool))
				return object.FieldErrors(err)
			},
		},
	})
}
