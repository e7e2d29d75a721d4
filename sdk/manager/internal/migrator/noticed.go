package migrator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// settle is how long after the first sight of a changed definition objects are migrated: each API server notices the change in its own
	// time, only one of them can be asked, and objects that another one stores in the old version would be lost with that version.
	settle = 10 * time.Second
	// noticeRetry is the interval at which the API server is asked.
	noticeRetry = 5 * time.Second
)

// noticed waits until API servers store new objects in the version of the definition. That is not an event.
func (c *Controller) noticed(ctx context.Context, s *scope) (step.Result, error) {
	if !s.stores {
		return step.Done(), nil
	}
	what := fmt.Sprintf("API servers to store objects of kind %s in version %s", s.Kind.Kind, s.Kind.Version)
	if left := s.began.Add(settle).Sub(c.Clock.Now()); left > 0 {
		return step.WaitAtMost(left, what), nil
	}
	version, err := c.Stores(ctx, s.Definition)
	if err != nil {
		return step.Done(), fmt.Errorf("asking in which version objects of kind %s are stored: %w", s.Kind.Kind, err)
	}
	if version != s.Kind.Version {
		return step.WaitAtMost(noticeRetry, what), nil
	}
	return step.Done(), nil
}
