package remote

import "sync"

const (
	// freeShare is how much may be cached of each kind and cluster, regardless of others. Five thousand Nodes take less.
	freeShare = 32 << 20
	// commonPool is how much may be cached beyond that, of all clusters together.
	commonPool = 512 << 20
)

// pool counts what is cached of all clusters of a process beyond their free shares. Without it, many clusters that send as much as allowed
// would exhaust the memory; with a single limit for everything, a few of them could exclude small clusters.
type pool struct {
	mu   sync.Mutex
	used int64
}

// allowance is what one store takes. It must only be used by one goroutine.
type allowance struct {
	pool  *pool
	taken int64
}

// take changes the size of the allowance. It fails if the pool does not have that much left.
func (a *allowance) take(bytes int64) error {
	a.pool.mu.Lock()
	defer a.pool.mu.Unlock()
	more := max(bytes-freeShare, 0) - max(a.taken-freeShare, 0)
	if more > 0 && a.pool.used+more > commonPool {
		return &limitError{What: "objects of all workload clusters together", Limit: commonPool}
	}
	a.pool.used += more
	a.taken = bytes
	return nil
}
