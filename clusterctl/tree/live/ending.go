package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/clusterctl/factory"
)

// ErrTimeout is the context's cause when a wait times out.
var ErrTimeout = errors.New("timeout")

// Ending explains a wait that did not succeed.
type Ending struct {
	Cluster types.NamespacedName
	Timeout time.Duration
	// State is the desired state, such as ready.
	State string
	// Going is what continues without the command.
	Going string
	// Hint is how to find out more.
	Hint string
}

// Context returns a context that ends after the timeout, with ErrTimeout as its cause.
func (e Ending) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.Timeout, ErrTimeout)
}

// Explain returns why the wait ended, and what was missing: waiting is what the Follower waited for, readErr its last
// read error, if any.
func (e Ending) Explain(err error, waiting []string, readErr error) error {
	what := "its objects to be read"
	if len(waiting) > 0 {
		what = strings.Join(waiting, "; ")
	}
	switch {
	case errors.Is(err, ErrTimeout) && readErr != nil:
		return factory.WithExitCode(
			fmt.Errorf("cluster %s is not %s after %s: still waiting for %s (%w): %s", e.Cluster, e.State, e.Timeout, what, readErr, e.Hint),
			factory.ExitTimeout)
	case errors.Is(err, ErrTimeout):
		return factory.WithExitCode(
			fmt.Errorf("cluster %s is not %s after %s: still waiting for %s: %s", e.Cluster, e.State, e.Timeout, what, e.Hint), factory.ExitTimeout)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted while waiting for %s; %s continues in the background: %s", what, e.Going, e.Hint)
	default:
		return fmt.Errorf("cluster %s: %w", e.Cluster, err)
	}
}
