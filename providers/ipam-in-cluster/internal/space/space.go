// Package space computes the addresses that a pool can allocate, from its spec. Ranges are never enumerated: those of IPv6 may have
// more addresses than fit into memory.
//
// Which addresses are allocated does not belong here.
package space

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/util/validation/field"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
)

// networkLimit is the number of networks that the addresses of a pool may be in: their reserved addresses are removed one by one.
const networkLimit = 1 << 16

// Space is the addresses that a pool can allocate.
type Space struct{ set *netipx.IPSet }

// Parse returns the addresses of a spec, or what is invalid in it. path is that of the spec.
func Parse(spec *inclusterv1.InClusterIPPoolSpec, path *field.Path) (Space, field.ErrorList) {
	p := parser{spec: spec}
	p.addresses(path.Child("addresses"))
	p.excluded(path.Child("excludedAddresses"))
	p.gateway(path.Child("gateway"))
	p.prefix(path.Child("prefix"))
	if len(p.errs) > 0 {
		return Space{}, p.errs
	}
	if !spec.AllocateReservedIPAddresses {
		p.reserved(path.Child("prefix"))
	}
	set, err := p.set.IPSet()
	if err != nil {
		p.errs = append(p.errs, field.InternalError(path, err))
	}
	return Space{set: set}, p.errs
}

// Contains reports whether the pool can allocate an address.
func (s Space) Contains(a netip.Addr) bool { return s.set.Contains(a) }

// Lowest returns the lowest addresses that are not taken, at most n of them, in order.
func (s Space) Lowest(n int, taken func(netip.Addr) bool) []netip.Addr {
	var free []netip.Addr
	for _, r := range s.set.Ranges() {
		for a := r.From(); len(free) < n && a.IsValid() && !r.To().Less(a); a = a.Next() {
			if !taken(a) {
				free = append(free, a)
			}
		}
	}
	return free
}

// Without returns the addresses of s that are not in t.
func (s Space) Without(t Space) (Space, error) {
	var b netipx.IPSetBuilder
	b.AddSet(s.set)
	b.RemoveSet(t.set)
	set, err := b.IPSet()
	return Space{set: set}, err
}

// Size returns the number of addresses, minus less. A number that does not fit is stated as the highest that does.
func (s Space) Size(less int) int64 {
	total := big.NewInt(int64(-less))
	for _, r := range s.set.Ranges() {
		first, last := new(big.Int).SetBytes(r.From().AsSlice()), new(big.Int).SetBytes(r.To().AsSlice())
		total.Add(total, last.Sub(last, first).Add(last, big.NewInt(1)))
	}
	if !total.IsInt64() {
		return math.MaxInt64
	}
	return total.Int64()
}

// parser parses the fields of a spec, and collects what is invalid.
type parser struct {
	spec *inclusterv1.InClusterIPPoolSpec
	set  netipx.IPSetBuilder
	// ranges are those of addresses.
	ranges []netipx.IPRange
	errs   field.ErrorList
}

func (p *parser) invalid(path *field.Path, value any, format string, args ...any) {
	p.errs = append(p.errs, field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

func (p *parser) addresses(path *field.Path) {
	if len(p.spec.Addresses) == 0 {
		p.errs = append(p.errs, field.Required(path, "must have the addresses to allocate"))
	}
	for i, text := range p.spec.Addresses {
		r, err := parseRange(text)
		if err != nil {
			p.invalid(path.Index(i), text, "%v", err)
			continue
		}
		p.family(path.Index(i), text, r.From())
		p.ranges = append(p.ranges, r)
		p.set.AddRange(r)
	}
}

func (p *parser) excluded(path *field.Path) {
	for i, text := range p.spec.ExcludedAddresses {
		r, err := parseRange(text)
		if err != nil {
			p.invalid(path.Index(i), text, "%v", err)
			continue
		}
		p.family(path.Index(i), text, r.From())
		p.set.RemoveRange(r)
	}
}

func (p *parser) gateway(path *field.Path) {
	if p.spec.Gateway == "" {
		return
	}
	gateway, err := netip.ParseAddr(p.spec.Gateway)
	if err != nil || gateway.Zone() != "" || gateway.Is4In6() {
		p.invalid(path, p.spec.Gateway, "must be an IPv4 or IPv6 address, such as 10.0.0.1 or fd00::1")
		return
	}
	p.family(path, p.spec.Gateway, gateway)
	p.set.Remove(gateway)
}

func (p *parser) prefix(path *field.Path) {
	most := 128
	if len(p.ranges) > 0 {
		most = p.ranges[0].From().BitLen()
	}
	if p.spec.Prefix < 1 || p.spec.Prefix > most {
		p.invalid(path, p.spec.Prefix, "must be between 1 and %d, the length of the network's prefix in bits", most)
	}
}

// family reports an address whose IP family is not that of the first one.
func (p *parser) family(path *field.Path, value string, a netip.Addr) {
	if len(p.ranges) == 0 || a.BitLen() == p.ranges[0].From().BitLen() {
		return
	}
	p.invalid(path, value, "must be %s like %s: create one pool for each IP family", familyOf(p.ranges[0].From()), p.ranges[0].From())
}

func familyOf(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// reserved removes the first address of every network, and the last one of every IPv4 network. Networks of two addresses have no
// reserved ones (RFC 3021, RFC 6164), nor do those of one.
func (p *parser) reserved(path *field.Path) {
	if p.spec.Prefix >= p.ranges[0].From().BitLen()-1 {
		return
	}
	count := 0
	for _, r := range p.ranges {
		for network := netip.PrefixFrom(r.From(), p.spec.Prefix).Masked(); ; count++ {
			if count == networkLimit {
				p.invalid(path, p.spec.Prefix, "the addresses are in more than %d networks of this length: "+
					"use a shorter prefix, fewer addresses, or set allocateReservedIPAddresses", networkLimit)
				return
			}
			last := netipx.PrefixLastIP(network)
			p.set.Remove(network.Addr())
			if last.Is4() {
				p.set.Remove(last)
			}
			next := last.Next()
			if !next.IsValid() || r.To().Less(next) {
				break
			}
			network = netip.PrefixFrom(next, p.spec.Prefix)
		}
	}
}

// parseRange parses an address, a range or a CIDR block.
func parseRange(text string) (netipx.IPRange, error) {
	r, err := parseAny(text)
	switch {
	case strings.Contains(text, "%"):
		return r, errors.New("must not have a zone")
	case err != nil:
		return r, errors.New("must be an address such as 10.0.0.5, a range such as 10.0.0.10-10.0.0.50, or a CIDR block such as 10.0.1.0/24")
	case r.From().Is4In6() || r.To().Is4In6():
		return r, errors.New("must be written as an IPv4 address: it is one that is mapped to IPv6")
	case r.From().BitLen() != r.To().BitLen():
		return r, errors.New("must have two addresses of one IP family")
	case !r.IsValid():
		return r, errors.New("must begin with the lower address")
	}
	return r, nil
}

func parseAny(text string) (netipx.IPRange, error) {
	if first, last, ok := strings.Cut(text, "-"); ok {
		from, err := netip.ParseAddr(strings.TrimSpace(first))
		if err != nil {
			return netipx.IPRange{}, err
		}
		to, err := netip.ParseAddr(strings.TrimSpace(last))
		return netipx.IPRangeFrom(from, to), err
	}
	if strings.Contains(text, "/") {
		block, err := netip.ParsePrefix(text)
		if err != nil {
			return netipx.IPRange{}, err
		}
		return netipx.RangeOfPrefix(block), nil
	}
	a, err := netip.ParseAddr(text)
	return netipx.IPRangeFrom(a, a), err
}
