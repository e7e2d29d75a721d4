package connection

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// firstBackoff is how long something is not called again after a timeout. It doubles up to lastBackoff.
	firstBackoff = 5 * time.Second
	lastBackoff  = time.Minute
)

// ErrBackoff is matched by the error of a call that was not made because of the backoff after a timeout.
var ErrBackoff = errors.New("it did not respond in time: waiting before it is called again")

// backoffError is an ErrBackoff with the time until its end. The text does not change while it passes: conditions have it.
type backoffError struct{ left time.Duration }

// Error returns the text of ErrBackoff.
func (*backoffError) Error() string { return ErrBackoff.Error() }

// Unwrap returns ErrBackoff.
func (*backoffError) Unwrap() error { return ErrBackoff }

// WaitForBackoff turns a step's error into a wait if it is only due to backoffs: an earlier retry would call nothing. Of several joined
// errors, those that are not due to backoffs are returned.
func WaitForBackoff(result step.Result, err error) (step.Result, error) {
	left, rest := split(err)
	if rest != nil || left == 0 {
		return result, rest
	}
	if after := result.After(); after > 0 {
		left = min(left, after)
	}
	return result.WithOutcome(step.WaitAtMost(left, "the workload cluster, which did not respond in time")), nil
}

// split returns when the first of the backoffs ends that err is due to, 0 if there are none, and the other errors.
func split(err error) (left time.Duration, rest error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var others []error
		for _, e := range joined.Unwrap() {
			l, other := split(e)
			left, others = soonest(left, l), append(others, other)
		}
		return left, errors.Join(others...)
	}
	if backoff, ok := errors.AsType[*backoffError](err); ok {
		return backoff.left, nil
	}
	return 0, err
}

// soonest returns the smaller duration, without those that are 0.
func soonest(a, b time.Duration) time.Duration {
	return min(cmp.Or(a, b), cmp.Or(b, a))
}

// backoffs remembers timeouts, by control plane and by what was called. Losing them costs the time of one worker.
type backoffs struct {
	mu    sync.Mutex
	known map[types.UID]connected
}

// connected has the timeouts of one connection.
type connected struct {
	since    time.Time
	timeouts map[string]backoff
}

type backoff struct {
	length time.Duration
	until  time.Time
}

// renew ends all backoffs of a control plane if it has another connection: they are due to an outage that has ended, and
// waiting for one after the other would take minutes.
func (b *backoffs) renew(uid types.UID, since time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[uid].since.Equal(since) && b.known[uid].timeouts != nil {
		return
	}
	if b.known == nil {
		b.known = map[types.UID]connected{}
	}
	b.known[uid] = connected{since: since, timeouts: map[string]backoff{}}
}

// left returns how long the backoff lasts. It is not positive if there is none.
func (b *backoffs) left(uid types.UID, what string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known[uid].timeouts[what].until.Sub(now)
}

// begin starts a backoff, twice as long as the previous one of this connection.
func (b *backoffs) begin(uid types.UID, what string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	timeouts := b.known[uid].timeouts
	if timeouts == nil {
		return // The control plane was deleted meanwhile.
	}
	length := min(max(firstBackoff, 2*timeouts[what].length), lastBackoff)
	timeouts[what] = backoff{length, now.Add(length)}
}

// end ends the backoff, and resets its length.
func (b *backoffs) end(uid types.UID, what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known[uid].timeouts, what)
}

// forget drops all backoffs of a control plane.
func (b *backoffs) forget(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, uid)
}
