package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy/schedule"
)

const (
	completed = fleetv1.BackupPhaseCompleted
	failed    = fleetv1.BackupPhaseFailed
)

// noon of the day on which the tests are; the policy makes backups at every full hour.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func clock(hour, minute int) time.Time { return time.Date(2026, 3, 1, hour, minute, 0, 0, time.UTC) }

// policy returns a policy that was created at 8:30.
func policy(change func(*fleetv1.EtcdBackupPolicySpec)) *fleetv1.EtcdBackupPolicy {
	p := &fleetv1.EtcdBackupPolicy{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(clock(8, 30))},
		Spec: fleetv1.EtcdBackupPolicySpec{Schedule: "0 * * * *", SpreadSeconds: ptr.To[int32](0), BackupSettings: fleetv1.BackupSettings{
			TimeoutSeconds: ptr.To[int32](600),
		}},
	}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// at returns a backup that was due at an hour, and completed five minutes later.
func at(cluster string, hour int, phase fleetv1.BackupPhase) Backup {
	b := Backup{Name: fmt.Sprintf("%s-%d", cluster, hour), Cluster: cluster, Due: clock(hour, 0), Phase: phase}
	if phase == completed {
		b.Completed = clock(hour, 5)
	}
	return b
}

func TestMake(t *testing.T) {
	a := Cluster{Name: "a", UID: "1", Since: clock(6, 0)}
	tests := []struct {
		reason   string
		change   func(*fleetv1.EtcdBackupPolicySpec)
		clusters []Cluster
		backups  []Backup
		now      time.Time
		want     Plan
	}{
		{reason: "nothing is selected, and nothing wakes the policy", now: clock(9, 1)},
		{reason: "the first is not due before the first time after the creation of the policy", clusters: []Cluster{a}, now: clock(8, 59),
			want: Plan{Next: clock(9, 0), Waiting: []string{"a"}}},
		{reason: "the first is due", clusters: []Cluster{a}, now: clock(9, 0),
			want: Plan{Create: []Due{{"a", "1", clock(9, 0)}}, Next: clock(9, 10), Waiting: []string{"a"}}},
		{reason: "a Cluster without a control plane waits", clusters: []Cluster{{Name: "a", UID: "1"}}, now: clock(9, 0)},
		{reason: "a control plane is backed up at the first time after it exists", clusters: []Cluster{{"a", "1", clock(9, 30)}}, now: clock(9, 40),
			want: Plan{Next: clock(10, 0), Waiting: []string{"a"}}},
		{reason: "a backup that runs is not created twice, and not overdue yet", clusters: []Cluster{a}, now: clock(9, 5),
			backups: []Backup{at("a", 9, "")}, want: Plan{Next: clock(9, 10), Waiting: []string{"a"}}},
		{reason: "one that was made is not made again", clusters: []Cluster{a}, now: clock(9, 20), backups: []Backup{at("a", 9, completed)},
			want: Plan{Next: clock(10, 0), Oldest: clock(9, 5), Current: 1}},
		{reason: "one that failed is overdue, and not made again before the next time", clusters: []Cluster{a}, now: clock(9, 20),
			backups: []Backup{at("a", 9, failed)}, want: Plan{Next: clock(10, 0), Failed: 1, Overdue: []string{"a"}}},
		{reason: "of several times that were missed, the latest is made up for", clusters: []Cluster{a}, now: clock(12, 30),
			backups: []Backup{at("a", 9, completed)},
			want:    Plan{Create: []Due{{"a", "1", noon}}, Next: clock(13, 0), Oldest: clock(9, 5), Overdue: []string{"a"}}},
		{reason: "a backup that takes longer than the interval is not overtaken", clusters: []Cluster{a}, now: clock(10, 5),
			backups: []Backup{at("a", 9, "")}, want: Plan{Next: clock(10, 10), Overdue: []string{"a"}}},
		{reason: "after a clock that was wrong, backups go on", clusters: []Cluster{a}, now: clock(10, 0),
			backups: []Backup{at("a", 23, completed)},
			want:    Plan{Create: []Due{{"a", "1", clock(10, 0)}}, Next: clock(10, 10), Overdue: []string{"a"}}},
		{reason: "at most so many run at the same time, the longest overdue first", now: clock(10, 0),
			change: func(s *fleetv1.EtcdBackupPolicySpec) {
				s.MaxConcurrent = ptr.To[int32](2)
				s.SpreadSeconds = ptr.To[int32](600)
			},
			clusters: []Cluster{{"a", "1", clock(6, 0)}, {"b", "2", clock(6, 0)}, {"c", "3", clock(6, 0)}},
			backups:  []Backup{at("c", 9, "")},
			want: Plan{Create: []Due{{"a", "1", time.Date(2026, 3, 1, 9, 4, 28, 0, time.UTC)}},
				Next: time.Date(2026, 3, 1, 10, 1, 30, 0, time.UTC), Overdue: []string{"a", "b", "c"}}},
		{reason: "what is not kept is deleted, because of the one that is", clusters: []Cluster{a}, now: clock(11, 30),
			change:  func(s *fleetv1.EtcdBackupPolicySpec) { s.Retention.Count = ptr.To[int32](1) },
			backups: []Backup{at("a", 9, completed), at("a", 10, completed), at("a", 11, completed)},
			want:    Plan{Next: clock(12, 0), Oldest: clock(11, 5), Current: 1, Delete: []Expired{{"a-10", "a-11"}, {"a-9", "a-11"}}}},
		{reason: "backups of Clusters that were deleted are kept by the same rules", now: clock(11, 30),
			change:  func(s *fleetv1.EtcdBackupPolicySpec) { s.Retention.Count = ptr.To[int32](1) },
			backups: []Backup{at("a", 9, completed), at("a", 10, completed)},
			want:    Plan{Delete: []Expired{{"a-9", "a-10"}}}},
		{reason: "one that is being deleted counts neither as kept nor as recent", clusters: []Cluster{a}, now: clock(10, 30),
			change:  func(s *fleetv1.EtcdBackupPolicySpec) { s.Retention.Count = ptr.To[int32](1) },
			backups: []Backup{at("a", 9, completed), {Name: "a-10", Cluster: "a", Due: clock(10, 0), Phase: completed, Deleting: true}},
			want:    Plan{Next: clock(11, 0), Oldest: clock(9, 5), Overdue: []string{"a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			p := policy(tt.change)
			s, err := schedule.Parse(&p.Spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, Make(p, s, tt.clusters, tt.backups, tt.now), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestDay runs a policy for a day of simulated time over 50 Clusters whose backups take a while: every Cluster gets a backup an hour, never
// more than two run, and what is kept stays bounded.
func TestDay(t *testing.T) {
	p := policy(func(s *fleetv1.EtcdBackupPolicySpec) {
		s.Schedule, s.SpreadSeconds, s.IntervalSeconds = "", nil, ptr.To[int32](3600)
		s.MaxConcurrent, s.Retention.Count = ptr.To[int32](2), ptr.To[int32](3)
	})
	s, err := schedule.Parse(&p.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var clusters []Cluster
	for i := range 50 {
		name := fmt.Sprintf("c%d", i)
		clusters = append(clusters, Cluster{Name: name, UID: types.UID(name), Since: clock(0, 0)})
	}
	const takes = 90 * time.Second
	now, made, passes := clock(9, 0), map[string]int{}, 0
	var backups []Backup
	for end := now.Add(24 * time.Hour); now.Before(end); passes++ {
		running := 0
		for i := range backups {
			if b := &backups[i]; b.Phase == "" {
				if b.Due.IsZero() || !now.Before(b.Completed) {
					b.Phase = completed
					continue
				}
				running++
			}
		}
		plan := Make(p, s, clusters, backups, now)
		for _, due := range plan.Create {
			made[due.Cluster]++
			running++
			name := due.Cluster + due.At.String()
			backups = append(backups, Backup{Name: name, Cluster: due.Cluster, Due: due.At, Completed: now.Add(takes)})
		}
		if running > 2 {
			t.Fatalf("%s: %d backups run", now, running)
		}
		for _, expired := range plan.Delete {
			backups = slices.DeleteFunc(backups, func(b Backup) bool { return b.Name == expired.Name })
		}
		now = next(plan, backups, now)
	}
	for _, c := range clusters {
		if n := made[c.Name]; n < 23 || n > 25 {
			t.Errorf("%s has %d backups in 24 hours", c.Name, n)
		}
	}
	if len(backups) > 50*4 {
		t.Errorf("%d backups are kept", len(backups))
	}
	if passes > 24*50*6 {
		t.Errorf("the plan was made %d times", passes)
	}
}

// next returns when a policy is reconciled next: when a backup ends, or at the time of its plan.
func next(p Plan, backups []Backup, now time.Time) time.Time {
	first := p.Next
	for _, b := range backups {
		if b.Phase == "" && b.Completed.After(now) && b.Completed.Before(first) {
			first = b.Completed
		}
	}
	return first
}
