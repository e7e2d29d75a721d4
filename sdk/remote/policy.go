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

// Policy restricts what the kubeconfig of a workload cluster may use, beyond a server with TLS
// and inline credentials. By default, users who can write kubeconfig Secrets are not trusted with
// more.
type Policy struct {
	// Exec allows users[].user.exec: a program that runs in this process's environment.
	Exec bool
	// Files allows tokenFile, certificate-authority, client-certificate and client-key: files that are read with this
	// process's permissions.
	Files bool
	// HTTP allows servers without TLS.
	HTTP bool
	// Loopback allows addresses of this process's own host or Pod.
	Loopback bool
	// LinkLocal allows link-local, multicast and metadata service addresses.
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

// The flags that limit requests; v1.7 and v1.9 named them after the part of them that connects to workload clusters.
const (
	qpsFlag        = "clustercache-client-qps"
	burstFlag      = "clustercache-client-burst"
	olderQPSFlag   = "clustercachetracker-client-qps"
	olderBurstFlag = "clustercachetracker-client-burst"
)

// Flags are the flags of managers that connect to workload clusters.
type Flags struct {
	// QPS and Burst are those of Options.
	QPS   float32
	Burst int
	allow []string
}

// AddTo adds the flags.
func (f *Flags) AddTo(fs *pflag.FlagSet) {
	fs.Float32Var(&f.QPS, qpsFlag, -1,
		"Requests per second to the API server of each workload cluster, on average. Negative: no limit.")
	fs.IntVar(&f.Burst, burstFlag, 30, "Maximum number of requests to the API server of a workload cluster in a burst.")
	fs.Float32Var(&f.QPS, olderQPSFlag, -1, "The same as --"+qpsFlag+", as in v1.7.")
	fs.IntVar(&f.Burst, olderBurstFlag, 30, "The same as --"+burstFlag+", as in v1.7.")
	fs.IntVar(new(int), "clustercache-concurrency", 100, "Accepted for compatibility, without effect.")
	fs.IntVar(new(int), "clustercachetracker-concurrency", 10, "The same, as in v1.7.")
	for name, advice := range map[string]string{
		olderQPSFlag: "use --" + qpsFlag, olderBurstFlag: "use --" + burstFlag,
		"clustercache-concurrency":        "remove it: connections to workload clusters are opened on demand, and the flag has no effect",
		"clustercachetracker-concurrency": "remove it: connections to workload clusters are opened on demand, and the flag has no effect",
	} {
		_ = fs.MarkDeprecated(name, advice) // It only fails for flags that do not exist.
	}
	fs.StringSliceVar(&f.allow, allowFlag, nil,
		"What kubeconfig Secrets of workload clusters may use beyond inline credentials and TLS, comma-separated: "+
			allowExec+" (run programs in this process's environment), "+allowFiles+" (read files of this process), "+
			allowHTTP+" (servers without TLS), "+
			allowLoopback+" (servers on the loopback interface; always allowed when the management cluster's API server is on the same host), "+
			allowLinkLocal+" (servers at link-local, multicast and cloud metadata addresses)")
}

// Validate returns an error for invalid values.
func (f *Flags) Validate() error {
	if f.Burst <= 0 && f.QPS >= 0 {
		return fmt.Errorf("invalid --%s: %d must be positive, unless --%s is negative", burstFlag, f.Burst, qpsFlag)
	}
	_, err := f.policy()
	return err
}

// Policy returns the policy of the flags, for a process with this connection to the management cluster. If that API
// server is on the same host, the process does not run in its own Pod, and workload clusters may be on the same host, too.
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
	fields := map[string]*bool{
		allowExec: &p.Exec, allowFiles: &p.Files, allowHTTP: &p.HTTP, allowLoopback: &p.Loopback, allowLinkLocal: &p.LinkLocal,
	}
	for _, name := range f.allow {
		field, known := fields[strings.TrimSpace(name)]
		if !known {
			return Policy{}, fmt.Errorf("invalid --%s: %q must be one of %s, %s, %s, %s and %s", allowFlag, name,
				allowExec, allowFiles, allowHTTP, allowLoopback, allowLinkLocal)
		}
		*field = true
	}
	return p, nil
}

// onThisHost reports whether the host of a rest.Config is this one, on the loopback or any other interface. In a Pod, which
// has its own network namespace, that is only true of the Pod itself.
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

// isOwn reports whether an interface of this host has an address.
func isOwn(ip netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().Unmap() == ip
	})
}

// metadataServices returns the addresses of cloud metadata services that are not link-local.
func metadataServices() []netip.Addr {
	return []netip.Addr{
		netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
		netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
	}
}

// nat64 returns the well-known prefix of NAT64 gateways for IPv4 addresses.
func nat64() netip.Prefix { return netip.MustParsePrefix("64:ff9b::/96") }

// address returns an error if the policy does not allow connections to an address.
func (p Policy) address(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if ip.Is6() && nat64().Contains(ip) {
		raw := ip.As16()
		ip = netip.AddrFrom4([4]byte(raw[12:]))
	}
	local := ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}) ||
		slices.Contains(metadataServices(), ip)
	switch {
	case local && !p.LinkLocal:
		return &RejectedError{What: "its server is at a link-local, multicast or metadata service address", Allow: allowLinkLocal}
	case (ip.IsLoopback() || ip.IsUnspecified()) && !p.Loopback:
		return &RejectedError{What: "its server is at an address of the manager itself", Allow: allowLoopback}
	}
	return nil
}
