// Package retry repeats requests to an API server that fail for reasons that pass, and decides which reasons do.
//
// It does not know what a request does: all of them must be safe to repeat, also if the API server has executed one and its
// response was lost.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// maxDelay bounds the delay that an API server asks for.
const maxDelay = 30 * time.Second

// Backoff gives up after about a minute, which is longer than the restart of an API server or of a webhook.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Steps: 10, Jitter: 0.4}
}

// Policy is how requests are repeated. Requests that are interrupted, and those that the API server cannot serve at the moment,
// always are.
type Policy struct {
	// Backoff is the delays between attempts, and their number. The zero value makes one attempt.
	Backoff wait.Backoff
	// Rereads is set for requests that read again, in every attempt, what they depend on: Outdated ones are repeated.
	Rereads bool
	// Denials is how many attempts webhooks may deny, because their caches may be stale; 0 is the same as 1.
	Denials int
	// Retrying, if not nil, is called with the first error of a request that is repeated.
	Retrying func(error)

	what string
}

// For returns the policy for requests that do the same, such as "read Lease a/b in the source cluster": errors begin with
// "cannot" and that.
func (p Policy) For(what string) Policy {
	p.what = what
	return p
}

// Do makes a request, and repeats it while it fails for reasons that pass. It returns the last error; if the context was
// canceled, the cause of that. If the deadline of the context has passed, the last error is why it was not enough.
func (p Policy) Do(ctx context.Context, request func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	denials := 0
	for backoff, repeated := p.Backoff, false; ; repeated = true {
		err := request(ctx)
		switch {
		case err == nil:
			return nil
		case errors.Is(ctx.Err(), context.Canceled):
			return context.Cause(ctx)
		}
		class := Classify(err)
		if class == Denied {
			denials++
		}
		if !p.repeats(class, denials) || backoff.Steps <= 1 || ctx.Err() != nil {
			return p.failed(err)
		}
		if !repeated && p.Retrying != nil {
			p.Retrying(p.failed(err))
		}
		select {
		case <-time.After(delay(backoff.Step(), err)):
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return context.Cause(ctx)
			}
			return p.failed(err)
		}
	}
}

func (p Policy) repeats(class Class, denials int) bool {
	switch class {
	case Interrupted, Unavailable:
		return true
	case Outdated:
		return p.Rereads
	case Denied:
		return denials < p.Denials
	default:
		return false
	}
}

func (p Policy) failed(err error) error {
	if p.what == "" {
		return err
	}
	return fmt.Errorf("cannot %s: %w", p.what, err)
}

// Passes reports whether a request that reads again what it depends on may succeed later.
func Passes(err error) bool { return Policy{Rereads: true}.repeats(Classify(err), 1) }

// delay returns how long to wait after an error: the step of the backoff, or longer if the API server asks for it.
func delay(step time.Duration, err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		return max(step, min(time.Duration(seconds)*time.Second, maxDelay))
	}
	return step
}
