// Package side is one side of a move: a connection that repeats requests that fail for reasons that pass.
//
// It does not know what a request does: all of them must be safe to repeat, also if the response was lost.
package side

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/clusterctl/management"
)

// maxDenials is how often a request may be denied by a webhook: its cache may be behind earlier requests of the move by
// seconds.
const maxDenials = 6

// parallel is how many objects are written concurrently: the API server sets the pace.
const parallel = 24

// Each calls a function for every item, some concurrently, until one fails.
func Each[T any](ctx context.Context, items []T, f func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, item := range items {
		group.Go(func() error { return f(ctx, item) })
	}
	return group.Wait()
}

// Side is the source or the target.
type Side struct {
	client.Client
	// Name is "source" or "target", or another cluster that is not part of a move, for errors.
	Name string
	// Host is the URL of the API server, for errors.
	Host string
	// Backoff is for requests that fail for reasons that pass; see Backoff.
	Backoff wait.Backoff
	// Retrying, if not nil, is called with the first error of a request that is repeated. It is called concurrently.
	Retrying func(error)
}

// Backoff gives up after about a minute, which is longer than the restart of an API server or of a webhook.
func Backoff() wait.Backoff {
	return wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Steps: 10, Jitter: 0.4}
}

// Do makes a request, and repeats it while it fails for reasons that pass. The error says what the request does, and in
// which cluster.
func (s *Side) Do(ctx context.Context, what string, request func(context.Context) error) error {
	var last error
	denials, repeated := 0, false
	err := wait.ExponentialBackoffWithContext(ctx, s.Backoff, func(ctx context.Context) (bool, error) {
		last = request(ctx)
		if !denied(last) && !transient(last) {
			return true, last
		}
		if !repeated {
			repeated = true
			s.retrying(what, last)
		}
		if denied(last) {
			denials++
		}
		return denials == maxDenials, nil
	})
	switch {
	case err == nil && last == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case last != nil:
		err = last
	}
	return s.failed(what, err)
}

func (s *Side) retrying(what string, err error) {
	if s.Retrying != nil {
		s.Retrying(s.failed(what, err))
	}
}

func (s *Side) failed(what string, err error) error {
	return fmt.Errorf("cannot %s in the %s cluster: %w", what, s.Name, err)
}

// denied reports whether a webhook denied the request.
func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	if connection, ok := errors.AsType[*management.ConnectionError](err); ok {
		return !connection.Permanent()
	}
	// A webhook that does not respond is an internal error.
	return utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) ||
		errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}
