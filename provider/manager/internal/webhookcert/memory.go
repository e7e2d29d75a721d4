package webhookcert

import (
	"context"
	"crypto/tls"
	"sync"

	"k8s.io/utils/clock"
)

// Memory is a source without anybody who has to trust it: of the webhooks of a manager that no API server calls, for
// example one that a developer runs outside of any cluster. Certificates are issued when they are asked for and
// forgotten with the process.
type Memory struct {
	rotation rotation
	clock    clock.PassiveClock

	mu      sync.Mutex
	current bundle
}

// NewMemory prepares certificates for at least one name.
func NewMemory(c clock.PassiveClock, dnsNames ...string) *Memory {
	return &Memory{rotation: rotation{dnsNames: dnsNames}, clock: c}
}

// GetCertificate is the certificate to serve now, issued or renewed on the way if necessary.
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

// Ready is always nil.
func (m *Memory) Ready() error { return nil }

// Start waits until ctx is done: there is nothing to keep.
func (m *Memory) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
