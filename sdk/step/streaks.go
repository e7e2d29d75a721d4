package step

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// conflictDelay is the delay before the first retry after a stale error. It doubles with each retry.
	conflictDelay = 50 * time.Millisecond
	// staleTries is how many retries in a row are not logged as errors, which takes about six seconds. After that, a slow
	// cache is an unlikely cause, and the error must be visible.
	staleTries = 7
)

// streaks counts, per object, how many reconciles in a row failed with stale errors. The work queue cannot: controller-runtime
// logs all errors that it counts.
type streaks struct {
	mu    sync.Mutex
	tries map[types.NamespacedName]int
}

// next returns the delay before the next silent retry, or false if there were too many.
func (s *streaks) next(key types.NamespacedName) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tries == nil {
		s.tries = map[types.NamespacedName]int{}
	}
	n := s.tries[key]
	if n >= staleTries {
		return 0, false
	}
	s.tries[key] = n + 1
	return conflictDelay << n, true
}

// end resets the count of an object.
func (s *streaks) end(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tries, key)
}
