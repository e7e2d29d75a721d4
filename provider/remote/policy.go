package remote

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

// Policy says what the kubeconfig of a workload cluster may make this process do, beyond connecting to a server over TLS
// with the credentials that the kubeconfig itself contains. Whoever can write a kubeconfig Secret is not trusted with
// more by default.
type Policy struct {
	// Exec permits users[].user.exec: a program that is run in this process's environment.
	Exec bool
	// Files permits tokenFile, certificate-authority, client-certificate and client-key: files that are read with this
	// process's rights.
	Files bool
	// HTTP permits servers without TLS.
	HTTP bool
	// Loopback permits addresses of this process's own host or Pod.
	Loopback bool
	// LinkLocal permits link-local, multicast and metadata service addresses.
	LinkLocal bool
}

// The values of --workload-cluster-allow.
const (
	allowExec      = "exec"
	allowFiles     = "files"
	allowHTTP      = "http"
	allowLoopback  = "loopback"
	allowLinkLocal = "link-local"
)

const allowFlag = "workload-cluster-allow"

// Flags are the flags of managers that connect to workload clusters.
type Flags struct {
	allow []string
}

// AddTo registers the flags.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.StringSliceVar(&f.allow, allowFlag, nil, "What kubeconfig Secrets of workload clusters may use beyond inline credentials and TLS, comma-separated: "+
		allowExec+" (run programs in this process's environment), "+allowFiles+" (read files of this process), "+allowHTTP+" (servers without TLS), "+
		allowLoopback+" (servers on the loopback interface; always allowed when the management cluster's API server is on the same host), "+
		allowLinkLocal+" (servers at link-local, multicast and cloud metadata addresses)")
}

// Validate reports values that mean nothing.
func (f *Flags) Validate() error {
	_, err := f.policy()
	return err
}

// Policy is what the flags say, for a process that reaches its management cluster with this configuration. If the API
// server is on the same host, the process does not run in a Pod of its own, and workload clusters may well be there, too.
func (f *Flags) Policy(management *rest.Config) (Policy, error) {
	p, err := f.policy()
	if err != nil {
		return Policy{}, err
	}
	p.Loopback = p.Loopback || onThisHost(management.Host)
	return p, nil
}

func (f *Flags) policy() (Policy, error) {
	p := Policy{}
	fields := map[string]*bool{allowExec: &p.Exec, allowFiles: &p.Files, allowHTTP: &p.HTTP, allowLoopback: &p.Loopback, allowLinkLocal: &p.LinkLocal}
	for _, name := range f.allow {
		field, known := fields[strings.TrimSpace(name)]
		if !known {
			return Policy{}, fmt.Errorf("invalid --%s: %q is none of %s, %s, %s, %s and %s", allowFlag, name,
				allowExec, allowFiles, allowHTTP, allowLoopback, allowLinkLocal)
		}
		*field = true
	}
	return p, nil
}

// onThisHost is whether the host of a rest.Config is this one, on the loopback or any other interface. In a Pod, whose
// network namespace is its own, that is only true of the Pod itself.
func onThisHost(host string) bool {
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	server, err := url.Parse(host)
	if err != nil {
		return false
	}
	if server.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(server.Hostname())
	return err == nil && (ip.Unmap().IsLoopback() || isOwn(ip.Unmap()))
}

// isOwn is whether an interface of this host has an address.
func isOwn(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

// metadataServices are addresses of cloud metadata services that are not link-local.
func metadataServices() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192")}
}

// nat64 is the well-known prefix under which a NAT64 gateway reaches IPv4 addresses.
func nat64() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") }

// address is nil if the policy permits connections to an address.
func (p Policy) address(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() && nat64().Contains(ip) {
		raw := ip.As16()
		ip = netip.AddrFrom4([4]byte(raw[12:]))
	}
	local := ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) || slices.Contains(metadataServices(), ip)
	switch {
	case local && !p.LinkLocal:
		return &RefusedError{What: "its server is at a link-local, multicast or metadata service address", Allow: allowLinkLocal}
	case (ip.IsLoopback() || ip.IsUnspecified()) && !p.Loopback:
		return &RefusedError{What: "its server is at an address of the manager itself", Allow: allowLoopback}
	}
	return nil
}
