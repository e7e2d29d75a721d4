// Package plan decides what an EtcdBackupPolicy does: which backups are created and deleted now, when there is something to do
// again, and how
// the policy is doing. It is a pure function of the policy, the Clusters that it selects, and their backups.
//
// When backups are due is computed in package schedule, which are kept in package retention. Reading and writing belongs in
// package policy.
package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/retention"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/schedule"
)

const (
	// DefaultConcurrent is EtcdBackupPolicySpec.MaxConcurrent if it is not set.
	DefaultConcurrent = 4
	// DefaultTimeout is BackupSettings.TimeoutSeconds if it is not set.
	DefaultTimeout = time.Hour
	// future is how far ahead the due time of a backup may be: clocks of managers differ. One further ahead is from a clock that
	// was wrong,
	// and must not stop backups until then.
	future = 5 * time.Minute
)

// Cluster is a Cluster that the policy selects.
type Cluster struct {
	Name string
	UID  types.UID
	// Since is when backups became possible; zero if they are not, because there is no control plane yet.
	Since time.Time
}

// Backup is a backup of the policy.
type Backup struct {
	Name, Cluster string
	// Due is when it was due.
	Due time.Time
	// Phase is that of its status. Deleting is set if it is being deleted.
	Phase    fleetv1.BackupPhase
	Deleting bool
	// Completed is when the archive was complete.
	Completed time.Time
}

func (b Backup) ended() bool {
	return b.Phase == fleetv1.BackupPhaseCompleted || b.Phase == fleetv1.BackupPhaseFailed
}

// Due is a backup to create.
type Due struct {
	Cluster string
	UID     types.UID
	At      time.Time
}

// Expired is a backup to delete.
type Expired struct {
	Name string
	// Because is a backup of the same Cluster that is kept: if it has been deleted, Name must not be deleted. It may be empty for a
	// backup that has failed.
	Because string
}

// Plan is what a policy does now.
type Plan struct {
	Create []Due
	Delete []Expired
	// Next is when there is something to do again, unless an event comes first. Zero: never.
	Next time.Time
	// Overdue are the names of the Clusters without a recent backup, sorted.
	Overdue []string
	// Waiting are the names of the Clusters whose first backup is not overdue yet, sorted.
	Waiting []string
	// Current is the number of Clusters with a recent backup.
	Current int
	// Failed is the number of Clusters whose latest backup that has ended has failed.
	Failed int
	// Oldest is the oldest completion time of the latest completed backups; zero if there are none.
	Oldest time.Time
}

// Make returns the plan of a policy.
func Make(policy *fleetv1.EtcdBackupPolicy, s schedule.Schedule, clusters []Cluster, backups []Backup, now time.Time) Plan {
	of := map[string][]Backup{}
	running := 0
	for _, b := range backups {
		of[b.Cluster] = append(of[b.Cluster], b)
		if !b.ended() && !b.Deleting {
			running++
		}
	}
	var p Plan
	for _, c := range clusters {
		p.observe(policy, s, c, of[c.Name], now)
	}
	free := max(int(ptr.Deref(policy.Spec.MaxConcurrent, DefaultConcurrent))-running, 0)
	// The longest overdue come first. What has no place waits for a backup to end, which is an event.
	slices.SortFunc(p.Create, func(a, b Due) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Cluster, b.Cluster)) })
	p.Create = p.Create[:min(free, len(p.Create))]
	for _, all := range of {
		p.expire(policy, all, now)
	}
	slices.SortFunc(p.Delete, func(a, b Expired) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(p.Overdue)
	slices.Sort(p.Waiting)
	return p
}

// observe adds what is due of a Cluster, and how it is doing.
func (p *Plan) observe(policy *fleetv1.EtcdBackupPolicy, s schedule.Schedule, c Cluster, backups []Backup, now time.Time) {
	var last, completed, ended Backup
	busy := false
	for _, b := range backups {
		if b.Due.After(now.Add(future)) {
			continue
		}
		busy = busy || !b.ended() && !b.Deleting
		last = later(last, b)
		if b.Phase == fleetv1.BackupPhaseCompleted && !b.Deleting {
			completed = later(completed, b)
		}
		if b.ended() {
			ended = later(ended, b)
		}
	}
	if ended.Phase == fleetv1.BackupPhaseFailed {
		p.Failed++
	}
	if !completed.Completed.IsZero() && (p.Oldest.IsZero() || completed.Completed.Before(p.Oldest)) {
		p.Oldest = completed.Completed
	}
	if c.Since.IsZero() {
		return
	}
	since := latest(policy.CreationTimestamp.Time, c.Since)
	due := s.Last(c.UID, now)
	if due.After(since) && due.After(last.Due) && !busy {
		p.Create = append(p.Create, Due{Cluster: c.Name, UID: c.UID, At: due})
	}
	p.wake(s.Next(c.UID, now))
	// A backup may take its time; until then, the previous one is recent enough.
	limit := due.Add(timeout(policy))
	if now.Before(limit) {
		p.wake(limit)
		due = s.Last(c.UID, due.Add(-time.Second))
	}
	switch {
	case due.After(since) && completed.Due.Before(due):
		p.Overdue = append(p.Overdue, c.Name)
	case completed.Completed.IsZero():
		p.Waiting = append(p.Waiting, c.Name)
	default:
		p.Current++
	}
}

// expire adds the backups of one Cluster that are no longer kept, whether it still exists or not.
func (p *Plan) expire(policy *fleetv1.EtcdBackupPolicy, all []Backup, now time.Time) {
	var ended []retention.Backup
	for _, b := range all {
		if b.ended() && !b.Deleting {
			ended = append(ended, retention.Backup{Name: b.Name, Time: b.Due, Failed: b.Phase == fleetv1.BackupPhaseFailed})
		}
	}
	excess, keep := retention.Excess(policy.Spec.Retention, ended, now)
	for _, b := range excess {
		expired := Expired{Name: b.Name}
		if !b.Failed {
			expired.Because = keep
		}
		p.Delete = append(p.Delete, expired)
	}
}

// wake makes sure that Next is not after t.
func (p *Plan) wake(t time.Time) {
	if !t.IsZero() && (p.Next.IsZero() || t.Before(p.Next)) {
		p.Next = t
	}
}

func timeout(policy *fleetv1.EtcdBackupPolicy) time.Duration {
	if policy.Spec.TimeoutSeconds == nil {
		return DefaultTimeout
	}
	return time.Duration(*policy.Spec.TimeoutSeconds) * time.Second
}

func later(a, b Backup) Backup {
	if b.Due.After(a.Due) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
