package store

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// burst is how many bytes a Limiter lets through at once at most.
const burst = 64 << 10

// Limiter limits how many bytes per second all of its readers read together. Backups and restores must not take the whole network of a
// management cluster, nor all that a member of etcd can read from its disk.
type Limiter struct {
	limiter *rate.Limiter
	burst   int
}

// NewLimiter returns a Limiter to a number of bytes per second, which must be positive.
func NewLimiter(bytesPerSecond int) *Limiter {
	most := min(bytesPerSecond, burst)
	return &Limiter{limiter: rate.NewLimiter(rate.Limit(bytesPerSecond), most), burst: most}
}

// Reader returns a reader that reads from r within the limit. Its Read returns the error of ctx once it ends.
func (l *Limiter) Reader(ctx context.Context, r io.Reader) io.Reader {
	return &limited{ctx: ctx, reader: r, Limiter: l}
}

type limited struct {
	ctx    context.Context //nolint:containedctx // io.Reader has no parameter for it
	reader io.Reader
	*Limiter
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, context.Cause(l.ctx)
	}
	n, err := l.reader.Read(p[:min(len(p), l.burst)])
	if n > 0 {
		if waitErr := l.limiter.WaitN(l.ctx, n); waitErr != nil {
			return n, context.Cause(l.ctx)
		}
	}
	return n, err
}
