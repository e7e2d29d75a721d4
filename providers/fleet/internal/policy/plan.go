package policy

import (
	"context"
	"time"

	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/plan"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/schedule"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// plan decides what is due. A policy with an invalid spec waits for its change.
func (c *Controller) plan(_ context.Context, s *scope) (step.Result, error) {
	if s.invalid != nil {
		return step.Wait("a valid spec"), nil
	}
	times, err := schedule.Parse(&s.policy.Spec)
	if err != nil {
		s.invalid = err
		return step.Wait("a valid spec"), nil
	}
	now := c.Clock.Now()
	s.plan = plan.Make(s.policy, times, clustersOf(s), backupsOf(s), now)
	s.record()
	if ptr.Deref(s.policy.Spec.Paused, false) {
		return step.Wait("spec.paused to be unset"), nil
	}
	if s.plan.Next.IsZero() {
		return step.Done(), nil
	}
	// Times of many Clusters may be close together: one reconcile for all within a second.
	return step.Again(max(s.plan.Next.Sub(now), time.Second)), nil
}

// record sets the numbers in the status.
func (s *scope) record() {
	status := &s.policy.Status
	status.Clusters = ptr.To(int32(len(s.clusters)))
	status.Current = ptr.To(int32(s.plan.Current))
	status.Failed = ptr.To(int32(s.plan.Failed))
	status.OldestSuccessTime = timeOrNil(s.plan.Oldest)
}

func clustersOf(s *scope) []plan.Cluster {
	all := make([]plan.Cluster, 0, len(s.clusters))
	for i := range s.clusters {
		c := &s.clusters[i]
		all = append(all, plan.Cluster{Name: c.Name, UID: c.UID, Since: since(c)})
	}
	return all
}

func backupsOf(s *scope) []plan.Backup {
	all := make([]plan.Backup, 0, len(s.backups))
	for i := range s.backups {
		b := &s.backups[i]
		one := plan.Backup{
			Name: b.Name, Cluster: b.Spec.ClusterName, Due: due(b), Phase: b.Status.Phase, Deleting: !b.DeletionTimestamp.IsZero(),
		}
		if b.Status.CompletionTime != nil {
			one.Completed = b.Status.CompletionTime.Time
		}
		all = append(all, one)
	}
	return all
}

// due returns the time for which a backup was due. If a user has removed the annotation, it is when it was created.
func due(b *fleetv1.EtcdBackup) time.Time {
	at, err := time.Parse(time.RFC3339, b.Annotations[fleetv1.SlotAnnotation])
	if err != nil {
		return b.CreationTimestamp.Time
	}
	return at
}
