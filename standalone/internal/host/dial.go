package host

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"sigs.k8s.io/cluster-api/sdk/naming"
)

// dial connects a component to an address. Names of Services, as <name>.<namespace>.svc, lead to the component behind the Service: there
// is no DNS for them. All other addresses are dialed.
func (h *host) dial(ctx context.Context, network, address string) (net.Conn, error) {
	hostname, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	key, ok := naming.ParseService(hostname)
	if !ok {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	port, err := strconv.ParseInt(portText, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	service := &corev1.Service{}
	if err := h.client.Get(ctx, key, service); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &net.DNSError{Err: "no such Service", Name: hostname, IsNotFound: true}
		}
		return nil, fmt.Errorf("find Service %s: %w", key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	ours, theirs := net.Pipe()
	if err := h.handTo(ctx, service, int32(port), theirs); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return ours, nil
}
