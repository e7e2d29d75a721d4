package backupstore

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/store"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// interval is how often a store that can be used is checked; retry is how often one that cannot. Nothing announces that a store, or a
	// Secret, has changed. Backups find out by themselves: this is for people who read the condition.
	interval, retry = time.Hour, time.Minute
	// limit is how long a check may take.
	limit = 2 * time.Minute
	// leftover is how old an upload must be to be removed: longer than any backup may take.
	leftover = 25 * time.Hour
)

// check writes an object to the store, and reads and deletes it.
func (c *Controller) check(ctx context.Context, s *scope) (step.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.failed = c.use(ctx, s.store); s.failed != nil || s.again {
		return step.Again(retry), nil
	}
	return step.Again(interval), nil
}

func (c *Controller) use(ctx context.Context, s *fleetv1.BackupStore) error {
	opened, err := c.opener.Open(ctx, s)
	if err != nil {
		return err
	}
	if err := opened.Clean(ctx, c.Clock.Now().Add(-leftover)); err != nil {
		return err
	}
	return opened.Check(ctx)
}

// Reason returns the reason of a condition for an error of a store.
func Reason(err error) string {
	for _, of := range []struct {
		is     error
		reason string
	}{
		{ErrInvalid, fleetv1.StoreInvalidReason},
		{store.ErrAddress, fleetv1.StoreAddressReason},
		{store.ErrCredentials, fleetv1.StoreRejectedReason},
		{store.ErrNoBucket, fleetv1.StoreMissingReason},
		{store.ErrFull, fleetv1.StoreFullReason},
		{store.ErrUnreachable, fleetv1.StoreUnreachableReason},
		{context.DeadlineExceeded, fleetv1.StoreUnreachableReason},
	} {
		if errors.Is(err, of.is) {
			return of.reason
		}
	}
	return fleetv1.StoreFailedReason
}

// reports returns the conditions of a store.
func reports(s *scope) []metav1.Condition { return []metav1.Condition{ready(s), imported(s)} }

func imported(s *scope) metav1.Condition {
	const t = fleetv1.StoreImportedCondition
	before := report.Get(s.store, t)
	switch {
	case s.imported != nil:
		return *s.imported
	case before == nil || s.store.Annotations[fleetv1.ImportAnnotation] == "":
		return report.None(t)
	}
	return *before
}

func ready(s *scope) metav1.Condition {
	if !s.store.DeletionTimestamp.IsZero() {
		return report.False(fleetv1.StoreReadyCondition, fleetv1.StoreInUseReason, "%s", s.inUse)
	}
	if s.failed != nil {
		return report.False(fleetv1.StoreReadyCondition, Reason(s.failed), "%s", condition.Brief(s.failed.Error()))
	}
	return report.True(fleetv1.StoreReadyCondition, fleetv1.StoreReadyReason, "")
}
