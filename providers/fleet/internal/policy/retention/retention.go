// Package retention decides which backups of a Cluster are kept, as a pure function of the policy's rules and the backups.
//
// Reading and deleting backups belongs in package policy.
package retention

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

const (
	// DefaultCount is how many backups are kept if the policy has no rule.
	DefaultCount = 7
	// keptFailures is how many of the latest failed backups are kept, so that people can see why.
	keptFailures = 3
)

// Backup is what matters of a backup that has ended.
type Backup struct {
	Name string
	// Time is when it was due or, of one that was not scheduled, created.
	Time time.Time
	// Failed is set if there is no archive, or a damaged one.
	Failed bool
}

// Excess returns the backups of one Cluster that no rule keeps, oldest first, and the latest one that has not failed, which is
// always kept;
// empty if there is none. A backup that has not failed is kept by any rule; of those that have failed, the latest few are kept.
func Excess(rules fleetv1.Retention, all []Backup, now time.Time) (excess []Backup, latest string) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Backup) int { return b.Time.Compare(a.Time) })
	count := ptr.Deref(rules.Count, 0)
	if rules == (fleetv1.Retention{}) {
		count = DefaultCount
	}
	daily, weekly := newest(rules.KeepDaily, day), newest(rules.KeepWeekly, week)
	good, failed := int32(0), 0
	for _, b := range all {
		if b.Failed {
			if failed++; failed > keptFailures {
				excess = append(excess, b)
			}
			continue
		}
		if good++; good == 1 {
			latest = b.Name
		}
		// Each rule looks at each backup, since it counts those that it keeps.
		byDay, byWeek := daily(b.Time), weekly(b.Time)
		young := rules.MaxAgeSeconds != nil && now.Sub(b.Time) <= time.Duration(*rules.MaxAgeSeconds)*time.Second
		if good != 1 && good > count && !young && !byDay && !byWeek {
			excess = append(excess, b)
		}
	}
	slices.Reverse(excess)
	return excess, latest
}

// newest returns a function that reports of backups, latest first, whether each is the latest of its period, in the latest limit
// periods that
// have a backup. Periods without any do not count: after a pause of a month, the daily backups before it are still kept.
func newest(limit *int32, period func(time.Time) string) func(time.Time) bool {
	last, seen := "", int32(0)
	return func(t time.Time) bool {
		p := period(t.UTC())
		if p == last || seen >= ptr.Deref(limit, 0) {
			return false
		}
		last = p
		seen++
		return true
	}
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

func week(t time.Time) string {
	year, number := t.ISOWeek()
	return fmt.Sprintf("%d-%02d", year, number)
}
