// Package side is one side of a move: a connection that repeats requests that fail for reasons that pass.
//
// It does not know what a request does: all of them must be safe to repeat, also if the response was lost.
package side

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/retry"
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
	// Backoff is for requests that fail for reasons that pass; see package retry.
	Backoff wait.Backoff
	// Retrying, if not nil, is called with the first error of a request that is repeated. It is called concurrently.
	Retrying func(error)
}

// Policy is how requests to the cluster are repeated.
func (s *Side) Policy() retry.Policy {
	return retry.Policy{Backoff: s.Backoff, Denials: maxDenials, Retrying: s.Retrying}
}

// Do makes a request, and repeats it while it fails for reasons that pass. The error says what the request does, and in
// which cluster.
func (s *Side) Do(ctx context.Context, what string, request func(context.Context) error) error {
	return s.Policy().For(what+" in the "+s.Name+" cluster").Do(ctx, request)
}
