package connection

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// The backoffs of an outage end with its connection.
func TestBackoffsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := workload()
		f.Since = time.Now()
		c := &Connector{Clock: clock.RealClock{}}
		for range 4 { // each backoff is longer than the one before it
			if _, err := c.bound("cp-uid", &kcptest.Unresponsive{Workload: f}).KubeadmConfigExists(t.Context()); err == nil {
				t.Fatal("an unresponsive cluster has no error")
			}
			time.Sleep(lastBackoff) // virtual
		}
		c.bound("cp-uid", &kcptest.Unresponsive{Workload: f}).Etcd(t.Context(), []string{"a", "b"})
		if answers := c.bound("cp-uid", f).Etcd(t.Context(), []string{"a"}); !errors.Is(answers[0].Err, ErrBackoff) {
			t.Errorf("the same connection: error %v, want that of the backoff", answers[0].Err)
		}
		f.Since = time.Now()
		for _, answer := range c.bound("cp-uid", f).Etcd(t.Context(), []string{"a", "b"}) {
			if answer.Err != nil {
				t.Errorf("a new connection: member on Node %s: %v", answer.Node, answer.Err)
			}
		}
		_, _ = c.bound("cp-uid", &kcptest.Unresponsive{Workload: f}).KubeadmConfigExists(t.Context())
		if left := c.backoffs.left("cp-uid", apiServer, time.Now()); left != firstBackoff {
			t.Errorf("the first backoff of a new connection is %s, want %s", left, firstBackoff)
		}
	})
}

func TestWaitForBackoff(t *testing.T) {
	short, long, other := &backoffError{left: time.Second}, &backoffError{left: time.Minute}, errors.New("no disk space")
	tests := map[string]struct {
		reason string
		result step.Result
		err    error
		after  time.Duration
		waits  bool
		want   error
	}{
		"Nothing":  {reason: "A result without an error is unchanged.", result: step.Again(time.Hour), after: time.Hour},
		"Backoff":  {reason: "A backoff is waited for.", err: fmt.Errorf("removing a member: %w", long), after: time.Minute, waits: true},
		"Soonest":  {reason: "Of several backoffs, the first one that ends.", err: errors.Join(long, fmt.Errorf("reading: %w", short)), after: time.Second, waits: true},
		"Deadline": {reason: "An earlier deadline of the step stays.", result: step.Again(2 * time.Second), err: long, after: 2 * time.Second, waits: true},
		"Other":    {reason: "Other errors are retried.", err: other, want: other},
		"Both":     {reason: "Backoffs do not hide other errors.", err: errors.Join(long, other), want: other},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			result, err := WaitForBackoff(tc.result, tc.err)
			if !errors.Is(err, tc.want) || errors.Is(err, ErrBackoff) || result.After() != tc.after || result.Ends() != tc.waits {
				t.Errorf("%s\nAwait(): error %v, after %s, waits %t; want %v, %s, %t", tc.reason, err, result.After(), result.Ends(), tc.want, tc.after, tc.waits)
			}
		})
	}
}
