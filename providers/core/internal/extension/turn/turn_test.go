package turn_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/core/internal/extension/turn"
)

var (
	first       = turn.Of{Server: "one", Version: "1", Handler: "a.one"}
	second      = turn.Of{Server: "one", Version: "1", Handler: "b.one"}
	other       = turn.Of{Server: "two", Version: "1", Handler: "a.two"}
	changed     = turn.Of{Server: "one", Version: "2", Handler: "a.one"}
	errTimedOut = errors.New("the server did not respond in time")
)

// take takes a turn, and checks the error and how long that takes.
func take(t *testing.T, turns *turn.Turns, of turn.Of, wantErr error, want time.Duration) *turn.Turn {
	t.Helper()
	begun := time.Now()
	taken, err := turns.Take(t.Context(), of)
	if took := time.Since(begun); !errors.Is(err, wantErr) || took != want {
		t.Fatalf("Take(%+v) after %s: %v, want %v after %s", of, took, err, wantErr, want)
	}
	return taken
}

// TestBusy fills a server with calls.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turn.New(2, clock.RealClock{})
		a := take(t, turns, first, nil, 0)
		time.AfterFunc(200*time.Millisecond, func() { a.End(nil) })
		take(t, turns, second, nil, 0)
		third := take(t, turns, first, nil, 200*time.Millisecond) // A call has ended.
		take(t, turns, other, nil, 0)                             // Of another server.
		take(t, turns, first, turn.ErrBusy, 800*time.Millisecond) // The oldest call has taken a second.
		take(t, turns, second, turn.ErrBusy, 0)
		take(t, turns, changed, nil, 0) // The state of its server is unknown.
		third.End(nil)
	})
}

func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turn.New(0, clock.RealClock{}) // That is one.
		take(t, turns, first, nil, 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := turns.Take(ctx, first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take with a context that ends: %v", err)
		}
	})
}

// TestTimeouts checks who calls a handler after a timeout.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := turn.New(2, clock.RealClock{})
		take(t, turns, first, nil, 0).End(errTimedOut)
		take(t, turns, first, errTimedOut, 0)
		take(t, turns, second, nil, 0).End(nil) // Another handler has its own timeout.
		take(t, turns, changed, nil, 0).End(nil)

		take(t, turns, first, nil, 0).End(errTimedOut) // The previous version is unknown now.
		time.Sleep(turn.Pause)
		probe := take(t, turns, first, nil, 0)
		take(t, turns, first, errTimedOut, 0) // One call at a time finds out.
		probe.End(errTimedOut)
		take(t, turns, first, errTimedOut, 0)
		time.Sleep(turn.Pause)
		take(t, turns, first, nil, 0).End(nil)
		take(t, turns, first, nil, 0).End(nil) // It responds again.
	})
}

// TestOthersAreNotDelayed has ten workers for fifty Clusters, of which ten do not need a server that hangs.
func TestOthersAreNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, clusters, timeout = 10, 50, 30 * time.Second
		turns := turn.New(workers/2, clock.RealClock{})
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
					} else if taken, err := turns.Take(t.Context(), first); err == nil {
						time.Sleep(timeout)
						taken.End(errTimedOut)
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
