package step

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// conflictDelay is the pause before the first retry after acting on an old copy. It doubles with each that follows.
	conflictDelay = 50 * time.Millisecond
	// staleTries is how many retries in a row are silent, about six seconds of them. A cache that lags is rarely the
	// reason any more then: somebody has to read about the error.
	staleTries = 7
)

// streaks counts, per object, how many reconciles in a row failed with stale errors. The workqueue cannot count them: it
// logs whatever it is told of as an error.
type streaks struct {
	mu    sync.Mutex
	tries map[types.NamespacedName]int
}

// next is the pause before the next silent retry; false when there have been enough of them.
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

// end ends the streak of an object.
func (s *streaks) end(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tries, key)
}
