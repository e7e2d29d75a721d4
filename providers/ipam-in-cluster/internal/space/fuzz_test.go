package space

import (
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
)

// Whatever is accepted has addresses of one family, in order, without gateway and excluded ones, and as many as it counts.
func FuzzSpace(f *testing.F) {
	for _, seed := range []struct {
		addresses, excluded, gateway string
		prefix                       int
		reserved                     bool
	}{
		{addresses: "10.0.0.0/24", excluded: "10.0.0.5-10.0.0.9", gateway: "10.0.0.1", prefix: 24},
		{addresses: "10.0.0.1,10.0.0.3-10.0.0.9", prefix: 16, reserved: true},
		{addresses: "fd00::/64", excluded: "fd00::/65", gateway: "fd00::1", prefix: 64},
		{addresses: "::/0", prefix: 128, reserved: true},
		{addresses: "0.0.0.0/0", prefix: 30}, {addresses: "::/0", prefix: 64}, {addresses: "255.255.255.255", prefix: 32},
		{addresses: "::ffff:10.0.0.1", prefix: 96}, {addresses: "fe80::1%eth0", prefix: 64}, {addresses: "10.0.0.9-10.0.0.1", prefix: 24},
		{addresses: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124", prefix: 124}, {addresses: "-", excluded: "/", gateway: "%", prefix: -1},
	} {
		f.Add(seed.addresses, seed.excluded, seed.gateway, seed.prefix, seed.reserved)
	}
	f.Fuzz(func(t *testing.T, addresses, excluded, gateway string, prefix int, reserved bool) {
		spec := &inclusterv1.InClusterIPPoolSpec{
			Addresses: strings.Split(addresses, ","), Gateway: gateway, Prefix: prefix, AllocateReservedIPAddresses: reserved,
		}
		if excluded != "" {
			spec.ExcludedAddresses = strings.Split(excluded, ",")
		}
		s, errs := Parse(spec, field.NewPath("spec"))
		if len(errs) > 0 {
			return
		}
		const most = 1000
		free := s.Lowest(most, func(netip.Addr) bool { return false })
		if size := s.Size(0); size < int64(len(free)) || len(free) < most && size != int64(len(free)) {
			t.Errorf("size %d, but %d addresses", size, len(free))
		}
		for i, a := range free {
			if !s.Contains(a) || a.String() == gateway || a.Is4In6() || a.BitLen() != free[0].BitLen() || prefix > a.BitLen() {
				t.Errorf("address %s", a)
			}
			if i > 0 && !free[i-1].Less(a) {
				t.Errorf("%s follows %s", a, free[i-1])
			}
			for _, text := range spec.ExcludedAddresses {
				if r, err := parseRange(text); err == nil && r.Contains(a) {
					t.Errorf("%s is excluded by %s", a, text)
				}
			}
		}
	})
}
