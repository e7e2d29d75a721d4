package remote

import "sync"

const (
	// freeShare is how much of each kind may be kept of each cluster, whatever is kept of others. Five thousand Nodes take less.
	freeShare = 32 << 20
	// commonPool is what everything beyond that takes at most, of all clusters together.
	commonPool = 512 << 20
)

// pool is what is kept of all clusters of a process beyond their free shares. Many clusters that send as much as they may
// would otherwise take all memory, and one limit for everything would let a few of them shut out those that need little.
type pool struct {
	mu   sync.Mutex
	used int64
}

// allowance is what one store takes. It belongs to one goroutine.
type allowance struct {
	pool  *pool
	taken int64
}

// take makes the allowance as large as this. It fails if that is more than the pool has left.
func (a *allowance) take(bytes int64) error {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	more := max(bytes-freeShare, 0) - max(a.taken-freeShare, 0)
	if more > 0 && a.pool.used+more > commonPool {
		return &limitError{What: "large objects or many, of all workload clusters together,", Limit: commonPool}
	}
	a.pool.used += more
	a.taken = bytes
	return nil
}
