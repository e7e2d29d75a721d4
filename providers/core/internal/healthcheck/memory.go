package healthcheck

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// maxRemembered is the maximum number of checks that are remembered. Forgetting one costs an event or a status write.
const maxRemembered = 4096

// memory is what a process remembers of checks between reconciles. Only the time of status writes and events depends on it.
type memory struct {
	mu sync.Mutex
	// since is when a change of the counters was first held back.
	since map[types.UID]time.Time
	// events are the failures that an event was sent for.
	events map[types.UID]map[string]bool
	// restricted reports whether Machines were not remediated although they should be. Condition RemediationAllowed has the same reason
	// if there are no such Machines, as in v1.7.
	restricted map[types.UID]bool
}

func newMemory() *memory {
	return &memory{since: map[types.UID]time.Time{}, events: map[types.UID]map[string]bool{}, restricted: map[types.UID]bool{}}
}

// pending returns how long a change of the counters is still held back.
func (m *memory) pending(h *clusterv1.MachineHealthCheck, now time.Time, delay time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	since, ok := m.since[h.UID]
	if !ok {
		if len(m.since) >= maxRemembered {
			clear(m.since)
		}
		m.since[h.UID] = now
		return delay
	}
	left := since.Add(delay).Sub(now)
	if left <= 0 {
		delete(m.since, h.UID)
	}
	return left
}

// settled forgets a change of the counters.
func (m *memory) settled(h *clusterv1.MachineHealthCheck) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.since, h.UID)
}

// restrict remembers whether remediation is restricted, and returns whether it was before. A check that is not remembered, as after a
// restart, was as it is now.
func (m *memory) restrict(h *clusterv1.MachineHealthCheck, restricted bool) (was bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, ok := m.restricted[h.UID]
	if !ok {
		was = restricted
		if len(m.restricted) >= maxRemembered {
			clear(m.restricted)
		}
	}
	m.restricted[h.UID] = restricted
	return was
}

// announced reports whether an event was sent for a failure.
func (m *memory) announced(h *clusterv1.MachineHealthCheck, failure string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.events[h.UID][failure]
}

// announce remembers the failures that exist now, and forgets those that are over.
func (m *memory) announce(h *clusterv1.MachineHealthCheck, failures map[string]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.events, h.UID)
	if len(failures) == 0 {
		return
	}
	if len(m.events) >= maxRemembered {
		clear(m.events)
	}
	m.events[h.UID] = failures
}
