package store

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
)

// ErrAddress is returned if a store has an address that stores must not have: see S3Options.AllowLocal.
var ErrAddress = errors.New("the manager sends no requests to this address")

// Tenants choose the endpoints of stores, and the manager sends the requests: from where it runs, more can be reached than by tenants.
// These are the addresses of the manager's own machine, of its link, and of the services with metadata and credentials of clouds.
var (
	metadataOfAWS = netip.MustParseAddr("fd00:ec2::254")
	// nat64 translates to the IPv4 address in the last 32 bits.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

// local reports whether an address is refused.
func local(ip netip.Addr) bool {
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	return !ip.IsValid() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip == metadataOfAWS
}

// guard refuses connections to local addresses. It checks the address of each connection, after the name was resolved, so that names that
// resolve differently each time are no way around it. A proxy of the manager's environment may be local: it decides itself what can be
// reached through it.
type guard struct {
	mu      sync.Mutex
	proxies map[string]bool
}

// proxy is http.ProxyFromEnvironment, and remembers the proxies.
func (g *guard) proxy(r *http.Request) (*url.URL, error) {
	proxy, err := http.ProxyFromEnvironment(r)
	if err != nil || proxy == nil {
		return proxy, err
	}
	port := proxy.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "socks5": "1080", "socks5h": "1080"}[proxy.Scheme]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proxies == nil {
		g.proxies = map[string]bool{}
	}
	g.proxies[net.JoinHostPort(proxy.Hostname(), port)] = true
	return proxy, nil
}

// isProxy reports whether an address, which may have a name, is that of a proxy.
func (g *guard) isProxy(address string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.proxies[address]
}

// check is the Control of a net.Dialer: it is called with the resolved address, before the connection.
func check(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrAddress, address)
	}
	if local(to.Addr()) {
		return fmt.Errorf("%w: %s is a loopback, link-local or multicast address, and its flag --allow-local-stores is not set",
			ErrAddress, to.Addr())
	}
	return nil
}
