package remote

import (
	"context"
	"sync/atomic"
)

// quota is how many bytes may be read of a response. In streams, it is refilled after every object.
type quota struct {
	what string
	size int64
	left atomic.Int64
	// total is the maximum size of the whole stream; zero for none.
	total int64
	read  atomic.Int64
}

func newQuota(what string, size, total int64) *quota {
	q := &quota{what: what, size: size, total: total}
	q.refill()
	return q
}

func (q *quota) refill() { q.left.Store(q.size) }

func (q *quota) take(n int) error {
	if q.left.Add(-int64(n)) < 0 {
		return &limitError{What: q.what, Limit: q.size}
	}
	if read := q.read.Add(int64(n)); q.total > 0 && read > q.total {
		return &limitError{What: q.what + " stream", Limit: q.total}
	}
	return nil
}

type quotaKey struct{}

// within sets the quota for requests with this context.
func within(ctx context.Context, q *quota) context.Context {
	return context.WithValue(ctx, quotaKey{}, q)
}
