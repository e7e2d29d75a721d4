package space

import (
	"math"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
)

// spec returns a spec with a prefix and addresses.
func spec(prefix int, addresses ...string) inclusterv1.InClusterIPPoolSpec {
	return inclusterv1.InClusterIPPoolSpec{Addresses: addresses, Prefix: prefix}
}

func with(s inclusterv1.InClusterIPPoolSpec, change func(*inclusterv1.InClusterIPPoolSpec)) inclusterv1.InClusterIPPoolSpec {
	change(&s)
	return s
}

func TestAddresses(t *testing.T) {
	gateway := func(g string) func(*inclusterv1.InClusterIPPoolSpec) {
		return func(s *inclusterv1.InClusterIPPoolSpec) { s.Gateway = g }
	}
	reserved := func(s *inclusterv1.InClusterIPPoolSpec) { s.AllocateReservedIPAddresses = true }
	excluded := func(e ...string) func(*inclusterv1.InClusterIPPoolSpec) {
		return func(s *inclusterv1.InClusterIPPoolSpec) { s.ExcludedAddresses = e }
	}
	for _, tc := range []struct {
		reason string
		spec   inclusterv1.InClusterIPPoolSpec
		// lowest are the lowest addresses, at most four.
		lowest []string
		size   int64
	}{
		{reason: "single addresses are ordered, and counted once", spec: spec(24, "10.0.0.9", "10.0.0.5", "10.0.0.9"), lowest: []string{"10.0.0.5", "10.0.0.9"}, size: 2},
		{reason: "a range includes both ends", spec: spec(24, "10.0.0.10-10.0.0.12"), lowest: []string{"10.0.0.10", "10.0.0.11", "10.0.0.12"}, size: 3},
		{reason: "spaces in a range are ignored", spec: spec(24, "10.0.0.10 - 10.0.0.11"), lowest: []string{"10.0.0.10", "10.0.0.11"}, size: 2},
		{reason: "overlapping ranges count once", spec: spec(24, "10.0.0.10-10.0.0.12", "10.0.0.12-10.0.0.13"), lowest: []string{"10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13"}, size: 4},
		{reason: "network and broadcast address are reserved", spec: spec(30, "10.0.0.0/30"), lowest: []string{"10.0.0.1", "10.0.0.2"}, size: 2},
		{reason: "the network is that of the prefix, not of the block", spec: spec(24, "10.0.0.4/30"), lowest: []string{"10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"}, size: 4},
		{reason: "a block with host bits is the whole block", spec: spec(24, "10.0.0.5/30"), lowest: []string{"10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7"}, size: 4},
		{reason: "every network has reserved addresses", spec: spec(30, "10.0.0.0-10.0.0.6"), lowest: []string{"10.0.0.1", "10.0.0.2", "10.0.0.5", "10.0.0.6"}, size: 4},
		{reason: "reserved addresses are allocated on demand", spec: with(spec(30, "10.0.0.0/30"), reserved), lowest: []string{"10.0.0.0", "10.0.0.1", "10.0.0.2", "10.0.0.3"}, size: 4},
		{reason: "a network of two addresses has no reserved ones", spec: spec(31, "10.0.0.0/31"), lowest: []string{"10.0.0.0", "10.0.0.1"}, size: 2},
		{reason: "a network of one address has no reserved ones", spec: spec(32, "10.0.0.0"), lowest: []string{"10.0.0.0"}, size: 1},
		{reason: "the last network of IPv4", spec: spec(30, "255.255.255.252/30"), lowest: []string{"255.255.255.253", "255.255.255.254"}, size: 2},
		{reason: "the gateway is not allocated", spec: with(spec(30, "10.0.0.0/30"), gateway("10.0.0.1")), lowest: []string{"10.0.0.2"}, size: 1},
		{reason: "the gateway is not allocated even if reserved addresses are", spec: with(with(spec(31, "10.0.0.0/31"), reserved), gateway("10.0.0.0")), lowest: []string{"10.0.0.1"}, size: 1},
		{reason: "excluded addresses are not allocated", spec: with(spec(29, "10.0.0.0/29"), excluded("10.0.0.1", "10.0.0.2-10.0.0.3", "10.0.0.4/31")), lowest: []string{"10.0.0.6"}, size: 1},
		{reason: "everything may be excluded", spec: with(spec(24, "10.0.0.5"), excluded("10.0.0.0/24"))},
		{reason: "IPv6 has an anycast address, and no broadcast", spec: spec(126, "fd00::/126"), lowest: []string{"fd00::1", "fd00::2", "fd00::3"}, size: 3},
		{reason: "an IPv6 network of two addresses", spec: spec(127, "fd00::/127"), lowest: []string{"fd00::", "fd00::1"}, size: 2},
		{reason: "a huge range is not enumerated", spec: spec(64, "fd00::/64"), lowest: []string{"fd00::1", "fd00::2", "fd00::3", "fd00::4"}, size: math.MaxInt64},
		{reason: "the largest number", spec: spec(64, "fd00::1-fd00::7fff:ffff:ffff:ffff"), lowest: []string{"fd00::1", "fd00::2", "fd00::3", "fd00::4"}, size: math.MaxInt64},
		{reason: "all of IPv6", spec: with(spec(128, "::/0"), reserved), lowest: []string{"::", "::1", "::2", "::3"}, size: math.MaxInt64},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			s, errs := Parse(&tc.spec, field.NewPath("spec"))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			var lowest []string
			for _, a := range s.Lowest(4, func(netip.Addr) bool { return false }) {
				lowest = append(lowest, a.String())
				if !s.Contains(a) {
					t.Errorf("%s is not contained", a)
				}
			}
			if diff := cmp.Diff(tc.lowest, lowest); diff != "" {
				t.Errorf("lowest (-want +got):\n%s", diff)
			}
			if got := s.Size(0); got != tc.size {
				t.Errorf("size = %d, want %d", got, tc.size)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	const form = ": must be an address such as 10.0.0.5, a range such as 10.0.0.10-10.0.0.50, or a CIDR block such as 10.0.1.0/24"
	for _, tc := range []struct {
		reason string
		spec   inclusterv1.InClusterIPPoolSpec
		want   []string
	}{
		{reason: "no addresses", spec: spec(24), want: []string{"spec.addresses: Required value: must have the addresses to allocate"}},
		{reason: "no prefix", spec: spec(0, "10.0.0.1"), want: []string{"spec.prefix: Invalid value: 0: must be between 1 and 32, the length of the network's prefix in bits"}},
		{reason: "a prefix of IPv6 for IPv4", spec: spec(64, "10.0.0.1"), want: []string{"spec.prefix: Invalid value: 64: must be between 1 and 32, the length of the network's prefix in bits"}},
		{reason: "a prefix that is too long", spec: spec(129, "fd00::1"), want: []string{"spec.prefix: Invalid value: 129: must be between 1 and 128, the length of the network's prefix in bits"}},
		{reason: "not an address", spec: spec(24, "ten"), want: []string{`spec.addresses[0]: Invalid value: "ten"` + form}},
		{reason: "not a block", spec: spec(24, "10.0.0.0/33"), want: []string{`spec.addresses[0]: Invalid value: "10.0.0.0/33"` + form}},
		{reason: "half a range", spec: spec(24, "10.0.0.1-"), want: []string{`spec.addresses[0]: Invalid value: "10.0.0.1-"` + form}},
		{reason: "a range backwards", spec: spec(24, "10.0.0.9-10.0.0.1"), want: []string{`spec.addresses[0]: Invalid value: "10.0.0.9-10.0.0.1": must begin with the lower address`}},
		{reason: "a range over families", spec: spec(24, "10.0.0.9-fd00::1"), want: []string{`spec.addresses[0]: Invalid value: "10.0.0.9-fd00::1": must have two addresses of one IP family`}},
		{reason: "a zone", spec: spec(64, "fe80::1%eth0"), want: []string{`spec.addresses[0]: Invalid value: "fe80::1%eth0": must not have a zone`}},
		{reason: "an IPv4 address in IPv6", spec: spec(64, "::ffff:10.0.0.1"), want: []string{`spec.addresses[0]: Invalid value: "::ffff:10.0.0.1": must be written as an IPv4 address: it is one that is mapped to IPv6`}},
		{reason: "two families", spec: spec(24, "10.0.0.1", "fd00::1"), want: []string{`spec.addresses[1]: Invalid value: "fd00::1": must be IPv4 like 10.0.0.1: create one pool for each IP family`}},
		{reason: "an invalid exclusion", spec: with(spec(24, "10.0.0.1"), func(s *inclusterv1.InClusterIPPoolSpec) { s.ExcludedAddresses = []string{"x", "fd00::1"} }),
			want: []string{`spec.excludedAddresses[0]: Invalid value: "x"` + form, `spec.excludedAddresses[1]: Invalid value: "fd00::1": must be IPv4 like 10.0.0.1: create one pool for each IP family`}},
		{reason: "an invalid gateway", spec: with(spec(24, "10.0.0.1"), func(s *inclusterv1.InClusterIPPoolSpec) { s.Gateway = "router" }),
			want: []string{`spec.gateway: Invalid value: "router": must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1`}},
		{reason: "a gateway of the other family", spec: with(spec(24, "10.0.0.1"), func(s *inclusterv1.InClusterIPPoolSpec) { s.Gateway = "fd00::1" }),
			want: []string{`spec.gateway: Invalid value: "fd00::1": must be IPv4 like 10.0.0.1: create one pool for each IP family`}},
		{reason: "too many networks", spec: spec(64, "fd00::/32"),
			want: []string{"spec.prefix: Invalid value: 64: the addresses are in more than 65536 networks of this length: use a shorter prefix, fewer addresses, or set allocateReservedIPAddresses"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, errs := Parse(&tc.spec, field.NewPath("spec"))
			var got []string
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTaken(t *testing.T) {
	s, errs := Parse(&inclusterv1.InClusterIPPoolSpec{Addresses: []string{"10.0.0.1-10.0.0.3", "10.0.0.9"}, Prefix: 24}, field.NewPath("spec"))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	taken := map[netip.Addr]bool{netip.MustParseAddr("10.0.0.1"): true, netip.MustParseAddr("10.0.0.3"): true}
	got := s.Lowest(5, func(a netip.Addr) bool { return taken[a] })
	want := []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.9")}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := s.Size(2); got != 2 {
		t.Errorf("size less two = %d", got)
	}
}
