package flowcontrol_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/internal/extension/flowcontrol"
)

var (
	first       = flowcontrol.Handler{Server: "one", Version: "1", Name: "a.one"}
	second      = flowcontrol.Handler{Server: "one", Version: "1", Name: "b.one"}
	other       = flowcontrol.Handler{Server: "two", Version: "1", Name: "a.two"}
	changed     = flowcontrol.Handler{Server: "one", Version: "2", Name: "a.one"}
	errTimedOut = errors.New("the server did not respond in time")
)

// begin begins a call, and checks the error and how long that takes.
func begin(t *testing.T, limiter *flowcontrol.Limiter, of flowcontrol.Handler, wantErr error, want time.Duration) *flowcontrol.Call {
	t.Helper()
	begun := time.Now()
	call, err := limiter.Begin(t.Context(), of)
	if took := time.Since(begun); !errors.Is(err, wantErr) || took != want {
		t.Fatalf("Begin(%+v) after %s: %v, want %v after %s", of, took, err, wantErr, want)
	}
	return call
}

// TestBusy fills a server with calls.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := flowcontrol.New(2, clock.RealClock{})
		a := begin(t, limiter, first, nil, 0)
		time.AfterFunc(200*time.Millisecond, func() { a.End(nil) })
		begin(t, limiter, second, nil, 0)
		third := begin(t, limiter, first, nil, 200*time.Millisecond)        // A call has ended.
		begin(t, limiter, other, nil, 0)                                    // Of another server.
		begin(t, limiter, first, flowcontrol.ErrBusy, 800*time.Millisecond) // The oldest call has taken a second.
		begin(t, limiter, second, flowcontrol.ErrBusy, 0)
		begin(t, limiter, changed, nil, 0) // The state of its server is unknown.
		third.End(nil)
	})
}

func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := flowcontrol.New(0, clock.RealClock{}) // That is one.
		begin(t, limiter, first, nil, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := limiter.Begin(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Begin with a context that ends: %v", err)
		}
	})
}

// TestTimeouts checks who calls a handler after a timeout.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := flowcontrol.New(2, clock.RealClock{})
		begin(t, limiter, first, nil, 0).End(errTimedOut)
		begin(t, limiter, first, errTimedOut, 0)
		begin(t, limiter, second, nil, 0).End(nil) // Another handler has its own timeout.
		begin(t, limiter, changed, nil, 0).End(nil)

		begin(t, limiter, first, nil, 0).End(errTimedOut) // The previous version is unknown now.
		time.Sleep(flowcontrol.Pause)
		probe := begin(t, limiter, first, nil, 0)
		begin(t, limiter, first, errTimedOut, 0) // One call at a time finds out.
		probe.End(errTimedOut)
		begin(t, limiter, first, errTimedOut, 0)
		time.Sleep(flowcontrol.Pause)
		begin(t, limiter, first, nil, 0).End(nil)
		begin(t, limiter, first, nil, 0).End(nil) // It responds again.
	})
}

// TestOthersAreNotDelayed has ten workers for fifty Clusters, of which ten do not need a server that hangs.
func TestOthersAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, clusters, timeout = 10, 50, 30 * time.Second
		limiter := flowcontrol.New(workers/2, clock.RealClock{})
		begun := time.Now()
		queue := make(chan int, clusters)
		for n := range clusters {
			queue <- n
		}
		close(queue)
		last := atomic.Int64{}
		group := sync.WaitGroup{}
		for range workers {
			group.Go(func() {
				for n := range queue {
					if n%5 == 4 { // It makes no call.
						last.Store(int64(time.Since(begun)))
					} else if call, err := limiter.Begin(t.Context(), first); err == nil {
						time.Sleep(timeout)
						call.End(errTimedOut)
					}
				}
			})
		}
		group.Wait()
		if got := time.Duration(last.Load()); got != time.Second {
			t.Errorf("the Clusters without extension took %s, want the second in which nobody knows that the server hangs", got)
		}
		if got := time.Since(begun); got != timeout {
			t.Errorf("all workers are free again after %s, want one timeout", got)
		}
	})
}
