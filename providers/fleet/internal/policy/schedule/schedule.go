// Package schedule computes when backups of a Cluster are due, by the schedule or the interval of an EtcdBackupPolicy.
//
// The backups of several Clusters are spread: each is due some time after the schedule, which follows from the Cluster's UID, so that every
// process computes the same time, and remembers nothing. All functions are pure. What is done when a backup is due does not belong here.
package schedule

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

const (
	// DefaultSpread is EtcdBackupPolicySpec.SpreadSeconds if it is not set.
	DefaultSpread = 10 * time.Minute
	// longest is how far back and ahead a time of a cron schedule is looked for. There are schedules without any, such as February 30.
	longest = 5 * 366 * 24 * time.Hour
)

// Schedule is when backups are due.
type Schedule struct {
	// cron is nil for an interval.
	cron   cron.Schedule
	period time.Duration
	spread time.Duration
}

// Parse returns the schedule of a policy. Errors name the field.
func Parse(spec *fleetv1.EtcdBackupPolicySpec) (Schedule, error) {
	if spec.IntervalSeconds != nil {
		period := time.Duration(*spec.IntervalSeconds) * time.Second
		if period <= 0 {
			return Schedule{}, fmt.Errorf("spec.intervalSeconds: must be positive (is %d)", *spec.IntervalSeconds)
		}
		return Schedule{period: period, spread: period}, nil
	}
	times, err := ParseTimes(spec.Schedule)
	if err != nil {
		return Schedule{}, fmt.Errorf("spec.schedule: %w", err)
	}
	parsed := times.cron
	s := Schedule{cron: parsed, spread: time.Duration(ptr.Deref(spec.SpreadSeconds, int32(DefaultSpread.Seconds()))) * time.Second}
	return s, nil
}

// Times are the times of a schedule in the format of cron.
type Times struct{ cron cron.Schedule }

// Next returns the first time after now; zero if there is none in five years.
func (t Times) Next(now time.Time) time.Time { return t.cron.Next(now) }

// ParseTimes parses a schedule such as "0 2 * * *", in UTC unless it begins with a time zone, such as CRON_TZ=Europe/Berlin.
func ParseTimes(text string) (Times, error) {
	if strings.Contains(text, "@every") {
		return Times{}, fmt.Errorf("%q is an interval, not times", text)
	}
	zoned := text
	if !strings.HasPrefix(text, "CRON_TZ=") && !strings.HasPrefix(text, "TZ=") {
		zoned = "CRON_TZ=UTC " + text
	}
	parsed, err := parse(zoned)
	if err != nil {
		return Times{}, fmt.Errorf("%q is not a schedule such as \"0 2 * * *\": %w", text, err)
	}
	return Times{parsed}, nil
}

// parse is cron.ParseStandard. It panics for some texts, such as a time zone alone.
func parse(text string) (s cron.Schedule, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("a time zone must be followed by five fields")
		}
	}()
	return cron.ParseStandard(text)
}

// Last returns the latest time until now at which a backup of a Cluster was due. It is zero if there was none in five years.
func (s Schedule) Last(cluster types.UID, now time.Time) time.Time {
	offset := s.offset(cluster)
	if s.cron == nil {
		return now.Add(-offset).Truncate(s.period).Add(offset).UTC()
	}
	base := now.Add(-offset)
	for window := time.Minute; window <= longest; window *= 2 {
		last, t := time.Time{}, s.cron.Next(base.Add(-window))
		for ; !t.IsZero() && !t.After(base); t = s.cron.Next(t) {
			last = t
		}
		if !last.IsZero() {
			return last.Add(offset).UTC()
		}
	}
	return time.Time{}
}

// Next returns the first time after now at which a backup of a Cluster is due. It is zero if there is none in five years.
func (s Schedule) Next(cluster types.UID, now time.Time) time.Time {
	if s.cron == nil {
		return s.Last(cluster, now).Add(s.period)
	}
	offset := s.offset(cluster)
	next := s.cron.Next(now.Add(-offset))
	if next.IsZero() {
		return next
	}
	return next.Add(offset).UTC()
}

// offset returns how long after the schedule a backup of a Cluster is due, in whole seconds: less than the spread.
func (s Schedule) offset(cluster types.UID) time.Duration {
	seconds := uint64(s.spread / time.Second)
	if seconds == 0 {
		return 0
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(cluster)) // It never fails.
	return time.Duration(h.Sum64()%seconds) * time.Second
}
