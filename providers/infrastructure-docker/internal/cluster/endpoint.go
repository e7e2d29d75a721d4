package cluster

import (
	"cmp"
	"context"
	"net/netip"

	"k8s.io/utils/ptr"

	"sigs.k8s.io/cluster-api/sdk/step"
)

// endpoint sets the endpoint of the cluster to the address of the load balancer, and reports that it is ready.
func (c *Controller) endpoint(_ context.Context, s *scope) (step.Result, error) {
	address := cmp.Or(s.state.IPv4, s.state.IPv6)
	if isIPv6(s.cluster) {
		address = cmp.Or(s.state.IPv6, s.state.IPv4)
	}
	at := s.obj.Endpoint
	if moved(at.Host, s.state.IPv4, s.state.IPv6) {
		return step.Done(),
			failed("container %q has the address %s, but the endpoint of the cluster is %s: it was restarted, and got another address. "+
				"Stop the container that has the address now, and restart this one", s.name, address, at.Host)
	}
	at.Host, at.Port = cmp.Or(at.Host, address), int32(portOf(s.obj))
	*s.obj.FailureDomains = s.obj.Spec.FailureDomains
	s.obj.Initialization.Provisioned = ptr.To(true)
	return step.Done(), nil
}

// moved reports whether an endpoint is an address in the network of the container, but not the container's. Other hosts are the
// choice of the user.
func moved(host, v4, v6 string) bool {
	const sameIPv4, sameIPv6 = 16, 64 // The default sizes of Docker's networks.
	endpoint, err := netip.ParseAddr(host)
	if err != nil || host == v4 || host == v6 {
		return false
	}
	for address, bits := range map[string]int{v4: sameIPv4, v6: sameIPv6} {
		own, err := netip.ParseAddr(address)
		if err != nil || own.Is4() != endpoint.Is4() {
			continue
		}
		if network, err := own.Prefix(bits); err == nil && network.Contains(endpoint) {
			return true
		}
	}
	return false
}
