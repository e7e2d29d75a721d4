package webhook

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

func poolRef(name string) ipamv1.IPPoolReference {
	return ipamv1.IPPoolReference{APIGroup: "g", Kind: "K", Name: name}
}

// addressWith returns a valid address of claim c, changed by change.
func addressWith(change ...func(*ipamv1.IPAddressSpec)) *ipamv1.IPAddress {
	a := &ipamv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"},
		Spec:       ipamv1.IPAddressSpec{ClaimRef: ipamv1.IPAddressClaimReference{Name: "c"}, PoolRef: poolRef("p"), Address: "10.0.0.5", Prefix: ptr.To[int32](24), Gateway: "10.0.0.1"},
	}
	for _, f := range change {
		f(&a.Spec)
	}
	return a
}

func withAddress(address string, prefix int32) func(*ipamv1.IPAddressSpec) {
	return func(s *ipamv1.IPAddressSpec) { s.Address, s.Prefix, s.Gateway = address, ptr.To(prefix), "" }
}

func TestIPAddressValidate(t *testing.T) {
	const prefix = `IPAddress.ipam.cluster.x-k8s.io "a" is invalid: `
	finalized := addressWith(withAddress("none", 99))
	finalized.Finalizers = []string{"f"}
	for _, tc := range []struct {
		reason   string
		old, new *ipamv1.IPAddress
		want     string
	}{
		{reason: "an address of IPv4", new: addressWith()},
		{reason: "an address of IPv6", new: addressWith(withAddress("fd00::5", 64))},
		{reason: "the shortest prefix", new: addressWith(withAddress("10.0.0.5", 0))},
		{reason: "the longest prefix of IPv4", new: addressWith(withAddress("10.0.0.5", 32))},
		{reason: "the longest prefix of IPv6", new: addressWith(withAddress("fd00::5", 128))},
		{reason: "a claim that does not exist", new: addressWith(func(s *ipamv1.IPAddressSpec) { s.ClaimRef.Name = "none" })},
		{reason: "too long for IPv4", new: addressWith(withAddress("10.0.0.5", 33)), want: prefix + "spec.prefix: Invalid value: 33: must be between 0 and 32 for an IPv4 address"},
		{reason: "too long for IPv6", new: addressWith(withAddress("fd00::5", 129)), want: prefix + "spec.prefix: Invalid value: 129: must be between 0 and 128 for an IPv6 address"},
		{reason: "negative", new: addressWith(withAddress("10.0.0.5", -1)), want: prefix + "spec.prefix: Invalid value: -1: must be between 0 and 32 for an IPv4 address"},
		{reason: "not an address", new: addressWith(withAddress("10.0.0.0/24", 24)), want: prefix + `spec.address: Invalid value: "10.0.0.0/24": must be an IPv4 or IPv6 address, such as 10.0.0.5 or fd00::5`},
		{reason: "a zone", new: addressWith(withAddress("fe80::1%eth0", 64)), want: prefix + `spec.address: Invalid value: "fe80::1%eth0": must be an IPv4 or IPv6 address, such as 10.0.0.5 or fd00::5`},
		{reason: "not a gateway", new: addressWith(func(s *ipamv1.IPAddressSpec) { s.Gateway = "router" }), want: prefix + `spec.gateway: Invalid value: "router": must be an IPv4 or IPv6 address, such as 10.0.0.5 or fd00::5`},
		{reason: "no claim", new: addressWith(func(s *ipamv1.IPAddressSpec) { s.ClaimRef.Name = "" }), want: prefix + "spec.claimRef.name: Required value: must be the name of the IPAddressClaim"},
		{
			reason: "no group", new: addressWith(func(s *ipamv1.IPAddressSpec) { s.ClaimRef.Name, s.PoolRef.APIGroup = "none", "" }),
			want: prefix + "spec.poolRef.apiGroup: Required value: must be the API group of the pool, such as ipam.cluster.x-k8s.io",
		},
		{
			reason: "another pool than that of the claim", new: addressWith(func(s *ipamv1.IPAddressSpec) { s.PoolRef = poolRef("q") }),
			want: prefix + `spec.poolRef: Invalid value: "K.g q": must be the pool of IPAddressClaim c: K.g p`,
		},
		{
			reason: "another address", old: addressWith(), new: addressWith(withAddress("10.0.0.6", 24)),
			want: prefix + "spec: Forbidden: cannot be changed: delete the IPAddressClaim and create another one",
		},
		{reason: "metadata of an invalid address can change", old: addressWith(withAddress("none", 99)), new: finalized},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			w := IPAddress{Claims: readerOfClaims(t)}.validator()
			_, err := w.ValidateCreate(t.Context(), tc.new)
			if tc.old != nil {
				_, err = w.ValidateUpdate(t.Context(), tc.old, tc.new)
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

// readerOfClaims returns a reader of claim c of pool p.
func readerOfClaims(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	testenv.Must(t, ipamv1.AddToScheme(s))
	return fake.NewClientBuilder().WithScheme(s).WithObjects(&ipamv1.IPAddressClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Spec: ipamv1.IPAddressClaimSpec{PoolRef: poolRef("p")},
	}).Build()
}

type failingReader struct{ client.Reader }

func (failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("no cache")
}

func TestIPAddressUnreadableClaim(t *testing.T) {
	_, err := IPAddress{Claims: failingReader{}}.validator().ValidateCreate(t.Context(), addressWith())
	if err == nil || err.Error() != "reading IPAddressClaim n/c: no cache" {
		t.Errorf("got %v", err)
	}
}
