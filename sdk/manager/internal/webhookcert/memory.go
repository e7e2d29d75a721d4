package webhookcert

import (
	"context"
	"crypto/tls"
	"sync"

	"k8s.io/utils/clock"
)

// Memory is a source of certificates that API servers do not trust, for a manager whose webhooks are not called: for
// example one that a developer runs outside of a cluster. Certificates are issued on demand and
// only kept in memory.
type Memory struct {
	rotation rotation
	clock    clock.PassiveClock

	mu      sync.Mutex
	current bundle
}

// NewMemory returns a source of certificates for at least one name.
func NewMemory(c clock.PassiveClock, dnsNames ...string) *Memory {
	return &Memory{rotation: rotation{dnsNames: dnsNames}, clock: c}
}

// GetCertificate returns the certificate to serve, which is issued or renewed if necessary.
func (m *Memory) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, _, err := m.rotation.next(m.current, m.clock.Now())
	if err != nil {
		return nil, err
	}
	m.current = next
	return next.serving, nil
}

// Ready returns nil.
func (m *Memory) Ready() error { return nil }

// Start waits until ctx is done.
func (m *Memory) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
