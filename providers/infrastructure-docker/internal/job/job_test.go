package job

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key = Key{Object: types.NamespacedName{Namespace: "default", Name: "m"}, UID: "uid", Name: "work"}
)

// newJobs returns jobs and the queue of a controller.
func newJobs(t *testing.T) (*Jobs, workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	t.Helper()
	j := New(testclock.NewFakePassiveClock(now))
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := j.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return j, queue
}

func TestRun(t *testing.T) {
	failure := errors.New("failed")
	for _, tt := range []struct {
		reason string
		do     func() (int, error)
		want   State[int]
		err    string
	}{
		{"a result", func() (int, error) { return 7, nil }, State[int]{Result: 7, Ended: now}, ""},
		{"a result and an error", func() (int, error) { return 7, failure }, State[int]{Result: 7, Ended: now, RetryIn: firstPause}, "failed"},
		{"a panic", func() (int, error) { panic("s3cret") }, State[int]{Ended: now, RetryIn: firstPause}, "work panicked: string"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			j, queue := newJobs(t)
			proceed := make(chan struct{})
			runs := 0
			do := func(context.Context) (int, error) {
				<-proceed
				runs++
				return tt.do()
			}
			for range 3 {
				if s := Run(j, key, do); !s.Running || s.Err != nil {
					t.Errorf("%+v", s)
				}
			}
			close(proceed)
			if got, _ := queue.Get(); got.NamespacedName != key.Object {
				t.Errorf("reconciles %v", got)
			}
			for range 2 {
				got := Run(j, key, do)
				if (got.Err == nil) != (tt.err == "") || got.Err != nil && got.Err.Error() != tt.err {
					t.Errorf("error %v, want %q", got.Err, tt.err)
				}
				if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(State[int]{}, "Err")); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
			if runs != 1 {
				t.Errorf("ran %d times", runs)
			}
			j.Forget(key)
			if s := Run(j, key, do); !s.Running {
				t.Errorf("after Forget: %+v", s)
			}
			j.Wait()
			if runs != 2 {
				t.Errorf("ran %d times after Forget", runs)
			}
		})
	}
}

// TestFailures: a job that fails is started again after pauses that double, or when RetryAll ends the pause.
func TestFailures(t *testing.T) {
	clock := testclock.NewFakePassiveClock(now)
	j := New(clock)
	runs := 0
	fail := func(context.Context) (int, error) { runs++; return 0, errors.New("x") }
	run := func() State[int] {
		s := Run(j, key, fail)
		j.Wait()
		return s
	}
	run()
	pause := firstPause
	for n := 1; n < 10; n++ {
		if s := run(); s.RetryIn != pause || runs != n {
			t.Errorf("after %d failures: %+v, ran %d times, want a pause of %s", n, s, runs, pause)
		}
		clock.SetTime(clock.Now().Add(pause - 1))
		if s := run(); s.RetryIn != 1 {
			t.Errorf("at the end of the pause: %+v", s)
		}
		clock.SetTime(clock.Now().Add(1))
		if s := run(); !s.Running {
			t.Errorf("after the pause: %+v", s)
		}
		pause = min(2*pause, lastPause)
	}
	j.RetryAll()
	if s := run(); !s.Running {
		t.Errorf("after RetryAll: %+v", s)
	}
	other := Key{Name: "succeeds"}
	for range 2 {
		Run(j, other, func(context.Context) (int, error) { runs = 100; return 0, nil })
		j.Wait()
		j.RetryAll()
		runs++
	}
	if runs != 102 || !j.Has(other) || j.Has(Key{Name: "none"}) {
		t.Errorf("a job that succeeded ran again: %d", runs)
	}
}

func TestDo(t *testing.T) {
	clock := testclock.NewFakePassiveClock(now)
	j := New(clock)
	runs, failure := 0, errors.New("x")
	do := func() error { runs++; return failure }
	for n := 1; n <= 3; n++ {
		pause := firstPause << (n - 1)
		for range 3 {
			if s := Do(j, key, do); s.Err != failure || s.RetryIn != pause || runs != n { //nolint:errorlint // It is returned as it is.
				t.Errorf("attempt %d: %+v, ran %d times", n, s, runs)
			}
		}
		clock.SetTime(clock.Now().Add(pause))
	}
	Do(j, key, do)
	j.RetryAll()
	failure = nil
	if s := Do(j, key, do); s.Err != nil || s.RetryIn != 0 || runs != 5 || j.Has(key) {
		t.Errorf("%+v, ran %d times", s, runs)
	}
}

// TestForget: a job that is forgotten ends, and triggers nothing.
func TestForget(t *testing.T) {
	for reason, forget := range map[string]func(*Jobs){
		"one job": func(j *Jobs) { j.Forget(key) },
		"an object": func(j *Jobs) {
			j.ForgetAll(types.NamespacedName{Name: "other"})
			j.ForgetAll(key.Object)
		},
	} {
		j, queue := newJobs(t)
		Run(j, key, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		forget(j)
		j.Wait()
		if queue.Len() != 0 {
			t.Errorf("%s: a forgotten job triggered a reconcile", reason)
		}
	}
}

func TestStart(t *testing.T) {
	j, _ := newJobs(t)
	Run(j, key, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if s := Run(j, Key{Name: "late"}, func(context.Context) (int, error) { panic("started") }); !s.Running {
		t.Errorf("%+v", s)
	}
}
