package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	tests := []struct {
		reason                 string
		rate, readers, content int
		want                   time.Duration
	}{
		{"the burst is free", 1 << 20, 1, burst, 0},
		{"one reader", 1 << 20, 1, burst + 10<<20, 10 * time.Second},
		{"several readers share the rate", 1 << 20, 4, burst/4 + 2<<20, 8 * time.Second},
		{"less than the burst per second", 1000, 1, 3000, 2 * time.Second},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, limiter := time.Now(), NewLimiter(tc.rate)
				var all sync.WaitGroup
				for range tc.readers {
					all.Go(func() {
						n, err := io.Copy(io.Discard, limiter.Reader(t.Context(), bytes.NewReader(make([]byte, tc.content))))
						if err != nil || n != int64(tc.content) {
							t.Errorf("read %d bytes: %v", n, err)
						}
					})
				}
				all.Wait()
				if took := time.Since(start); took < tc.want-time.Millisecond || took > tc.want+100*time.Millisecond {
					t.Errorf("took %s, want %s", took, tc.want)
				}
			})
		})
	}
}

func TestLimiterEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		n, err := io.Copy(io.Discard, NewLimiter(1000).Reader(ctx, bytes.NewReader(make([]byte, 1<<20))))
		if !errors.Is(err, stop) {
			t.Errorf("read %d bytes: %v", n, err)
		}
	})
}
