package policy

import (
	"context"
	"errors"
	"fmt"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/plan"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// expire deletes the backups that are no longer kept. An archive that is deleted cannot be brought back, so that the policy, and the backup
// that is kept instead, are read from the API server first: someone may have deleted that one, or changed the retention.
func (c *Controller) expire(ctx context.Context, s *scope) (step.Result, error) {
	if len(s.plan.Delete) == 0 {
		return step.Done(), nil
	}
	result, err := c.Latest(ctx, step.Reread(s.policy, &fleetv1.EtcdBackupPolicy{}, func(live, cached *fleetv1.EtcdBackupPolicy) bool {
		return live.Generation == cached.Generation
	}))
	if err != nil || result.Ends() {
		return result, err
	}
	var errs []error
	for _, expired := range s.plan.Delete {
		if err := c.delete(ctx, s, expired); err != nil {
			errs = append(errs, fmt.Errorf("deleting EtcdBackup %s: %w", expired.Name, err))
		}
	}
	return step.Done(), errors.Join(errs...)
}

func (c *Controller) delete(ctx context.Context, s *scope, expired plan.Expired) error {
	if expired.Because != "" {
		kept := s.find(expired.Because)
		outdated, err := step.Outdated(ctx, c.Live, step.Reread(kept, &fleetv1.EtcdBackup{}, func(live, _ *fleetv1.EtcdBackup) bool {
			return live.Status.Phase == fleetv1.BackupPhaseCompleted
		}))
		if err != nil {
			return err
		}
		if outdated != "" {
			return step.Stale("the cache does not show %s, which is kept instead", outdated)
		}
	}
	return c.Delete(ctx, s.find(expired.Name))
}
