package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestTimes(t *testing.T) {
	const uid = types.UID("a")
	tests := []struct {
		reason     string
		spec       fleetv1.EtcdBackupPolicySpec
		now        string
		last, next string
	}{
		{
			reason: "every night, without a spread",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "0 2 * * *", SpreadSeconds: ptr.To[int32](0)},
			now:    "2026-03-01T01:59:59Z", last: "2026-02-28T02:00:00Z", next: "2026-03-01T02:00:00Z",
		},
		{
			reason: "a time is due when it comes",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "0 2 * * *", SpreadSeconds: ptr.To[int32](0)},
			now:    "2026-03-01T02:00:00Z", last: "2026-03-01T02:00:00Z", next: "2026-03-02T02:00:00Z",
		},
		{
			reason: "a time zone, across the change to summer time",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "CRON_TZ=Europe/Berlin 0 4 * * *", SpreadSeconds: ptr.To[int32](0)},
			now:    "2026-03-28T12:00:00Z", last: "2026-03-28T03:00:00Z", next: "2026-03-29T02:00:00Z",
		},
		{
			reason: "once a year",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "0 0 29 2 *", SpreadSeconds: ptr.To[int32](0)},
			now:    "2026-03-28T12:00:00Z", last: "2024-02-29T00:00:00Z", next: "2028-02-29T00:00:00Z",
		},
		{
			reason: "spread over ten minutes, by the UID",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "0 2 * * *"},
			now:    "2026-03-01T12:00:00Z", last: "2026-03-01T02:03:16Z", next: "2026-03-02T02:03:16Z",
		},
		{
			reason: "hourly, at a second of the hour that follows from the UID",
			spec:   fleetv1.EtcdBackupPolicySpec{IntervalSeconds: ptr.To[int32](3600)},
			now:    "2026-03-01T12:00:00Z", last: "2026-03-01T11:33:16Z", next: "2026-03-01T12:33:16Z",
		},
		{
			reason: "never",
			spec:   fleetv1.EtcdBackupPolicySpec{Schedule: "0 0 30 2 *"},
			now:    "2026-03-01T12:00:00Z", last: "0001-01-01T00:00:00Z", next: "0001-01-01T00:00:00Z",
		},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			s, err := Parse(&tt.spec)
			if err != nil {
				t.Fatal(err)
			}
			last, next := s.Last(uid, at(tt.now)), s.Next(uid, at(tt.now))
			if got := last.Format(time.RFC3339); got != tt.last {
				t.Errorf("the last is %s, want %s", got, tt.last)
			}
			if got := next.Format(time.RFC3339); got != tt.next {
				t.Errorf("the next is %s, want %s", got, tt.next)
			}
		})
	}
}

func TestInvalid(t *testing.T) {
	for _, text := range []string{"", "daily at two", "0 25 * * *", "CRON_TZ=Nowhere/Land 0 2 * * *", "CRON_TZ=UTC", "TZ=", "0 0 2 * * *", "@every 90m"} {
		_, err := Parse(&fleetv1.EtcdBackupPolicySpec{Schedule: text})
		if err == nil || !strings.HasPrefix(err.Error(), "spec.schedule: ") {
			t.Errorf("%q: want an error that names the field, got %v", text, err)
		}
	}
}

// TestSpread checks that a thousand clusters are spread evenly: with an hourly interval, no minute has a tenth of them.
func TestSpread(t *testing.T) {
	s, err := Parse(&fleetv1.EtcdBackupPolicySpec{IntervalSeconds: ptr.To[int32](3600)})
	if err != nil {
		t.Fatal(err)
	}
	minutes := map[int]int{}
	for i := range 1000 {
		minutes[s.Next(types.UID(fmt.Sprintf("cluster-%d", i)), at("2026-03-01T12:00:00Z")).Minute()]++
	}
	for minute, n := range minutes {
		if n > 40 {
			t.Errorf("%d of 1000 clusters are due in minute %d", n, minute)
		}
	}
	if len(minutes) != 60 {
		t.Errorf("they are spread over %d minutes, want 60", len(minutes))
	}
}

// TestConsistent checks that nothing is due between the last time and the next.
func TestConsistent(t *testing.T) {
	for _, text := range []string{"*/7 * * * *", "0 2 * * *", "30 4 1 * 1", "@hourly", "15 3 1,15 * *"} {
		s, err := Parse(&fleetv1.EtcdBackupPolicySpec{Schedule: text})
		if err != nil {
			t.Fatal(err)
		}
		now := at("2026-01-01T00:00:00Z")
		for range 500 {
			last, next := s.Last("x", now), s.Next("x", now)
			if last.After(now) || !next.After(now) || !s.Next("x", last).Equal(next) || !s.Last("x", next).Equal(next) {
				t.Fatalf("%s at %s: last %s, next %s", text, now, last, next)
			}
			now = now.Add(37*time.Minute + 11*time.Second)
		}
	}
}
