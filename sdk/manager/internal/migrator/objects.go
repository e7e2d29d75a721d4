package migrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sigs.k8s.io/cluster-api/sdk/migration"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// firstPause and lastPause are the limits of the pause after a pass with objects that cannot be saved. Users do not wait for them.
	firstPause = time.Minute
	lastPause  = time.Hour
	// failuresInARow is after how many objects that cannot be saved a pass ends, because they may all fail for the same reason, such as a
	// conversion webhook that does not respond. The next pass tries the others first.
	failuresInARow = 20
)

// objects patches all objects for which something is due, one after the other: controllers share the rate limit of requests.
func (c *Controller) objects(ctx context.Context, s *scope) (step.Result, error) {
	if !s.stores && !s.cleans {
		return step.Done(), nil
	}
	pass := migration.Pass{Kind: s.Requested(), Patch: s.patch, Parallel: 1, Failures: failuresInARow}
	err := pass.Run(ctx, c.Live, c.Client, &s.visited)
	if err == nil || step.IsStale(err) {
		s.pause = 0
		return step.Done(), err
	}
	failed, isObjects := errors.AsType[*migration.ObjectsError](err)
	if !isObjects && !apierrors.IsForbidden(err) {
		return step.Done(), err
	}
	if isObjects && failed.Saved > 0 {
		s.pause = 0
	}
	return c.later(ctx, s, err), nil
}

// later returns a result that tries again after a while, with an event if there was none for the same reason.
func (c *Controller) later(ctx context.Context, s *scope, err error) step.Result {
	s.pause = min(max(2*s.pause, firstPause), lastPause)
	const advice = "updating such an object with kubectl shows why; or skip the phase with --skip-crd-migration-phases"
	if why := err.Error(); s.warned != why {
		step.Warning(ctx, "FailedMigration", "%s: %s. It is tried again within an hour", why, advice)
		s.warned = why
	}
	return step.WaitAtMost(s.pause, fmt.Sprintf("all objects of kind %s to be migrated: %v: %s", s.Kind.Kind, err, advice))
}

// patch returns the patch of an object; nil if nothing is due.
func (s *scope) patch(o *metav1.PartialObjectMetadata) ([]byte, error) {
	if s.cleans {
		if patch, err := s.Fields(o); patch != nil || err != nil {
			return patch, err // It stores the object as well.
		}
	}
	if s.stores {
		return migration.Unchanged(), nil
	}
	return nil, nil
}
