package tenure

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	testclock "k8s.io/utils/clock/testing"
)

const limit = 12 * time.Second

// lock is a lock in memory: err is the response to the next write, which takes some time.
type lock struct {
	resourcelock.Interface
	clock *testclock.FakePassiveClock
	takes time.Duration
	err   error
	held  string
}

func (*lock) Identity() string { return "me" }

func (l *lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lock) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	l.clock.SetTime(l.clock.Now().Add(l.takes))
	if l.err == nil {
		l.held = r.HolderIdentity
	}
	return l.err
}

func TestTenure(t *testing.T) {
	mine, nobody := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	type world struct {
		*Tenure
		lock *lock
	}
	renew := func(w world) error { return w.Watch(w.lock).Update(t.Context(), mine) }
	pass := func(w world, d time.Duration) { w.lock.clock.SetTime(w.lock.clock.Now().Add(d)) }
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		reason string
		do     func(*testing.T, world)
		over   bool
	}{
		"NeverLed": {
			reason: "Replicas that wait for the lease serve webhooks and write their certificates.",
			do:     func(_ *testing.T, w world) { pass(w, time.Hour) },
		},
		"Renewed": {
			reason: "A leader that renews its lease in time leads for as long as it does.",
			do: func(t *testing.T, w world) {
				must(t, w.Watch(w.lock).Create(t.Context(), mine))
				for range 10 {
					pass(w, limit-time.Second)
					must(t, renew(w))
				}
				pass(w, limit-time.Second)
			},
		},
		"NotRenewed": {
			reason: "Others can acquire a lease that is not renewed.",
			do: func(t *testing.T, w world) {
				must(t, renew(w))
				pass(w, limit)
			},
			over: true,
		},
		"SlowRenewal": {
			reason: "Others count from when they see the renewal, which is not before it is sent.",
			do: func(t *testing.T, w world) {
				must(t, renew(w))
				w.lock.takes = 4 * time.Second
				must(t, renew(w))
				pass(w, limit-4*time.Second)
			},
			over: true,
		},
		"FailedRenewal": {
			reason: "A renewal that failed does not extend the tenure.",
			do: func(t *testing.T, w world) {
				must(t, renew(w))
				pass(w, limit-time.Second)
				w.lock.err = errors.New("conflict")
				if err := renew(w); !errors.Is(err, w.lock.err) {
					t.Fatal(err)
				}
				pass(w, time.Second)
			},
			over: true,
		},
		"LateRenewal": {
			reason: "What a suspended leader is doing is from before, even if it can acquire the lease again.",
			do: func(t *testing.T, w world) {
				must(t, renew(w))
				pass(w, time.Minute)
				if err := renew(w); !errors.Is(err, ErrOver) {
					t.Fatal(err)
				}
			},
			over: true,
		},
		"Released": {
			reason: "A leader that ends releases its lease, and another one may lead at once.",
			do: func(t *testing.T, w world) {
				must(t, renew(w))
				must(t, w.Watch(w.lock).Update(t.Context(), nobody))
				if w.lock.held != "" {
					t.Fatalf("the lease is held by %q", w.lock.held)
				}
			},
			over: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
			w := world{New(limit, clock), &lock{clock: clock}}
			tt.do(t, w)
			if err := w.Check(); (err != nil) != tt.over || tt.over && !errors.Is(err, ErrOver) {
				t.Errorf("%s Check: %v", tt.reason, err)
			}
		})
	}
}

// A process ends when its tenure does, unless it ends on its own.
func TestAwait(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	tenure := New(limit, clock)
	if err := tenure.renew(clock.Now()); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := tenure.Await(ended); err != nil {
		t.Errorf("the end of the process is not an error: %v", err)
	}
	clock.SetTime(clock.Now().Add(limit))
	for range 2 {
		if err := tenure.Check(); !errors.Is(err, ErrOver) {
			t.Errorf("Check: %v", err)
		}
	}
	if err := tenure.Await(t.Context()); !errors.Is(err, ErrOver) {
		t.Errorf("Await: %v", err)
	}
}

func TestGuard(t *testing.T) {
	var received []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { received = append(received, r.Method) }))
	defer server.Close()
	clock := testclock.NewFakePassiveClock(time.Unix(1e9, 0))
	tenure := New(limit, clock)
	config := &rest.Config{Host: server.URL}
	Guard(config, tenure.Check)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := tenure.renew(clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := send(http.MethodPatch); err != nil {
		t.Errorf("a leader writes: %v", err)
	}
	clock.SetTime(clock.Now().Add(limit))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if err := send(method); !errors.Is(err, ErrOver) {
			t.Errorf("%s of a previous leader: %v", method, err)
		}
	}
	if err := send(http.MethodGet); err != nil {
		t.Errorf("a previous leader reads: %v", err)
	}
	if got := strings.Join(received, " "); got != "PATCH GET" {
		t.Errorf("the server received %s", got)
	}
}
