package retention

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// backups parses "01-02T15 01-03T16!": times in 2026, with an exclamation mark for a backup that has failed.
func backups(t *testing.T, text string) []Backup {
	t.Helper()
	var all []Backup
	for name := range strings.FieldsSeq(text) {
		when, failed := strings.CutSuffix(name, "!")
		at, err := time.Parse("2006-01-02T15", "2026-"+when)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Backup{Name: name, Time: at, Failed: failed})
	}
	return all
}

func TestExcess(t *testing.T) {
	tests := []struct {
		reason string
		rules  fleetv1.Retention
		all    string
		want   string
		latest string
	}{
		{reason: "no backups"},
		{reason: "without rules, the latest seven", all: "01-01T00 01-02T00 01-03T00 01-04T00 01-05T00 01-06T00 01-07T00 01-08T00 01-09T00",
			want: "01-01T00 01-02T00", latest: "01-09T00"},
		{reason: "the latest two, whatever the order", rules: fleetv1.Retention{Count: ptr.To[int32](2)}, all: "01-03T00 01-01T00 01-02T00",
			want: "01-01T00", latest: "01-03T00"},
		{reason: "younger than a day", rules: fleetv1.Retention{MaxAgeSeconds: ptr.To[int64](86400)}, all: "01-30T11 01-30T12 01-30T13",
			want: "01-30T11", latest: "01-30T13"},
		{reason: "the latest is kept, however old", rules: fleetv1.Retention{MaxAgeSeconds: ptr.To[int64](86400)}, all: "01-01T00 01-02T00",
			want: "01-01T00", latest: "01-02T00"},
		{reason: "the latest of each of two days, and days without any do not count", rules: fleetv1.Retention{KeepDaily: ptr.To[int32](2)},
			all: "01-01T00 01-02T00 01-02T23 01-20T10 01-20T11", want: "01-01T00 01-02T00 01-20T10", latest: "01-20T11"},
		{reason: "weeks begin on Monday", rules: fleetv1.Retention{KeepWeekly: ptr.To[int32](2)}, // January 5 and 12 are Mondays.
			all: "01-04T00 01-05T00 01-11T23 01-12T00", want: "01-04T00 01-05T00", latest: "01-12T00"},
		{reason: "what one of the rules keeps is kept", rules: fleetv1.Retention{Count: ptr.To[int32](1), KeepDaily: ptr.To[int32](3)},
			all: "01-01T00 01-02T00 01-03T00 01-03T01", want: "01-03T00", latest: "01-03T01"},
		{reason: "failed ones do not count, and the latest three of them are kept", rules: fleetv1.Retention{Count: ptr.To[int32](1)},
			all: "01-01T00 01-02T00 01-03T00! 01-04T00! 01-05T00! 01-06T00!", want: "01-01T00 01-03T00!", latest: "01-02T00"},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			excess, latest := Excess(tt.rules, backups(t, tt.all), time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
			var got []string
			for _, b := range excess {
				got = append(got, b.Name)
			}
			if diff := cmp.Diff(strings.Fields(tt.want), got, cmp.Transformer("nil", func(in []string) []string { return append([]string{}, in...) })); diff != "" {
				t.Errorf("excess, -want +got:\n%s", diff)
			}
			if latest != tt.latest {
				t.Errorf("the latest is %s, want %s", latest, tt.latest)
			}
		})
	}
}

// TestStable checks for random rules and backups that what is kept once is not excess when the excess is gone: a policy reaches a state in
// which it deletes nothing.
func TestStable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	some := func(n int32) *int32 {
		if random.IntN(2) == 0 {
			return nil
		}
		return ptr.To(1 + random.Int32N(n))
	}
	for range 2000 {
		rules := fleetv1.Retention{Count: some(5), KeepDaily: some(5), KeepWeekly: some(5)}
		var all []Backup
		for i := range random.IntN(40) {
			all = append(all, Backup{Name: string(rune('A' + i)), Time: now.Add(-time.Duration(random.IntN(90*24)) * time.Hour), Failed: random.IntN(4) == 0})
		}
		excess, latest := Excess(rules, all, now)
		kept := slices.DeleteFunc(slices.Clone(all), func(b Backup) bool { return slices.Contains(excess, b) })
		again, still := Excess(rules, kept, now)
		if len(again) > 0 || latest != still {
			t.Fatalf("%+v: of those that are kept, %v are excess; the latest was %q, and is %q", rules, again, latest, still)
		}
	}
}
