package healthcheck

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// suspects are the workload clusters that did not answer the last time. One of them is queried at a time; all others without a limit.
type suspects struct {
	mu       sync.Mutex
	clusters map[types.NamespacedName]bool
	querying bool
}

func newSuspects() *suspects { return &suspects{clusters: map[types.NamespacedName]bool{}} }

// begin reports whether a cluster may be queried now. If so, done must be called with whether it answered.
func (s *suspects) begin(cluster types.NamespacedName) (done func(answered bool), allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	suspect := s.clusters[cluster]
	if suspect && s.querying {
		return nil, false
	}
	s.querying = s.querying || suspect
	return func(answered bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if suspect {
			s.querying = false
		}
		if answered {
			delete(s.clusters, cluster)
			return
		}
		if len(s.clusters) >= maxRemembered {
			clear(s.clusters)
		}
		s.clusters[cluster] = true
	}, true
}
