package manager

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithin(t *testing.T) {
	failed := errors.New("failed")
	for _, c := range []struct {
		why   string
		run   func(context.Context) error
		stops bool // the process is stopped
		want  string
	}{
		{"an error before it is stopped", func(context.Context) error { return failed }, false, "failed"},
		{"an end in time", func(ctx context.Context) error { <-ctx.Done(); time.Sleep(time.Second); return nil }, true, ""},
		{"a function ignores its context", func(context.Context) error { time.Sleep(time.Hour); return nil }, true, "shutdown took longer than 9s"},
	} {
		t.Run(c.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				defer time.Sleep(2 * time.Hour) // No goroutine outlives the bubble.
				if c.stops {
					time.AfterFunc(time.Minute, stop)
				}
				err := within(ctx, 9*time.Second, func() error { return c.run(ctx) })
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				if c.want != "" && !errors.Is(err, failed) && !strings.Contains(err.Error(), "manager.TestWithin") {
					t.Errorf("the error lacks the running functions: %v", err)
				}
			})
		})
	}
}
