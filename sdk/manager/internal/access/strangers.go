package access

import (
	"net/netip"
	"sync"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// strangers limits the reviews of unknown tokens per address.
type strangers struct {
	mu    sync.Mutex // ensures one rate per address
	rates *lru.Cache // of flowcontrol.PassiveRateLimiter, by where
	clock clock.PassiveClock
}

// accept reports whether an unknown token from an address may be reviewed.
func (s *strangers) accept(address string) bool {
	return s.rate(where(address)).TryAccept()
}

func (s *strangers) rate(from string) flowcontrol.PassiveRateLimiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.rates.Get(from); ok {
		return known.(flowcontrol.PassiveRateLimiter)
	}
	rate := flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(strangersPerSecond, strangersAtOnce, s.clock)
	s.rates.Add(from, rate)
	return rate
}

// where returns what the addresses of a host have in common: a host may use any address of an IPv6 /64 network. It returns
// "" for addresses that cannot be parsed.
func where(address string) string {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return ""
	}
	ip := parsed.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}
