package retry

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

func TestDo(t *testing.T) {
	denied := errors.New(`admission webhook "v" denied the request: not yet`)
	conflict := apierrors.NewConflict(configMaps, "c", errors.New("changed"))
	lost := posting(io.EOF)
	invalid := errors.New("invalid")
	five := wait.Backoff{Steps: 5}
	tests := []struct {
		reason    string
		policy    Policy
		responses []error // the last one is repeated
		attempts  int
		retrying  []string
		want      string
	}{
		{reason: "success", policy: Policy{Backoff: five}, responses: []error{nil}, attempts: 1},
		{reason: "a permanent error", policy: Policy{Backoff: five}, responses: []error{invalid}, attempts: 1, want: "cannot do it: invalid"},
		{
			reason: "a lost response is reported once", policy: Policy{Backoff: five}, responses: []error{lost, lost, nil}, attempts: 3,
			retrying: []string{"cannot do it: " + lost.Error()},
		},
		{
			reason: "until the backoff ends", policy: Policy{Backoff: five}, responses: []error{lost}, attempts: 5,
			retrying: []string{"cannot do it: " + lost.Error()}, want: "cannot do it: " + lost.Error(),
		},
		{reason: "the zero value makes one attempt", responses: []error{lost}, attempts: 1, want: "cannot do it: " + lost.Error()},
		{reason: "a conflict stays if nothing is read again", policy: Policy{Backoff: five}, responses: []error{conflict}, attempts: 1, want: "cannot do it: " + conflict.Error()},
		{
			reason: "a conflict passes if it is", policy: Policy{Backoff: five, Rereads: true}, responses: []error{conflict, nil}, attempts: 2,
			retrying: []string{"cannot do it: " + conflict.Error()},
		},
		{reason: "a denial is an answer", policy: Policy{Backoff: five, Rereads: true}, responses: []error{denied}, attempts: 1, want: "cannot do it: " + denied.Error()},
		{
			reason: "unless the webhook's cache may be stale", policy: Policy{Backoff: five, Denials: 3}, responses: []error{denied, nil}, attempts: 2,
			retrying: []string{"cannot do it: " + denied.Error()},
		},
		{
			reason: "but not for long", policy: Policy{Backoff: five, Denials: 3}, responses: []error{denied}, attempts: 3,
			retrying: []string{"cannot do it: " + denied.Error()}, want: "cannot do it: " + denied.Error(),
		},
		{
			reason: "other errors are not counted as denials", policy: Policy{Backoff: five, Denials: 2}, responses: []error{lost, denied, lost, nil}, attempts: 4,
			retrying: []string{"cannot do it: " + lost.Error()},
		},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			var retrying []string
			tc.policy.Retrying = func(err error) { retrying = append(retrying, err.Error()) }
			attempts := 0
			err := tc.policy.For("do it").Do(t.Context(), func(context.Context) error {
				attempts++
				return tc.responses[min(attempts, len(tc.responses))-1]
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want || attempts != tc.attempts {
				t.Errorf("got %q after %d attempts, want %q after %d", got, attempts, tc.want, tc.attempts)
			}
			if diff := cmp.Diff(tc.retrying, retrying); diff != "" {
				t.Errorf("reported retries: -want +got:\n%s", diff)
			}
		})
	}
}

// TestContextEnds: the cause of a cancellation is the error, whatever the request returned; after a deadline, it is the last
// error.
func TestContextEnds(t *testing.T) {
	cause, lost := errors.New("the Lease was lost"), posting(io.EOF)
	policy := Policy{Backoff: wait.Backoff{Duration: time.Hour, Steps: 5}}

	canceled, cancel := context.WithCancelCause(t.Context())
	attempts := 0
	during := policy.Do(canceled, func(context.Context) error {
		attempts++
		cancel(cause)
		return lost
	})
	before := policy.Do(canceled, func(context.Context) error {
		attempts++
		return nil
	})
	if !errors.Is(during, cause) || !errors.Is(before, cause) || attempts != 1 {
		t.Errorf("canceled: %v, then %v, after %d attempts; want the cause twice, after one", during, before, attempts)
	}

	waiting, cancel := context.WithCancelCause(t.Context())
	policy.Retrying = func(error) { cancel(cause) }
	if err := policy.Do(waiting, func(context.Context) error { return lost }); !errors.Is(err, cause) {
		t.Errorf("canceled between two attempts: %v", err)
	}

	policy.Retrying = nil
	limited, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	if err := policy.Do(limited, func(context.Context) error { return lost }); !errors.Is(err, io.EOF) {
		t.Errorf("after the deadline: %v", err)
	}
}

func TestDelay(t *testing.T) {
	tests := []struct {
		reason string
		err    error
		want   time.Duration
	}{
		{"the backoff decides", posting(io.EOF), time.Second},
		{"429 without RetryAfter", apierrors.NewTooManyRequestsError("x"), time.Second},
		{"the API server asks for more", apierrors.NewTooManyRequests("x", 5), 5 * time.Second},
		{"the backoff is longer", apierrors.NewServerTimeout(configMaps, "post", 0), time.Second},
		{"a load balancer asks for too much", response(503, 3600), maxDelay},
	}
	for _, tc := range tests {
		t.Run(tc.reason, func(t *testing.T) {
			if got := delay(time.Second, tc.err); got != tc.want {
				t.Errorf("delay(): %s, want %s", got, tc.want)
			}
		})
	}
}
