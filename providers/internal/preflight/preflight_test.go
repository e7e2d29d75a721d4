package preflight

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChecks(t *testing.T) {
	unreadable := errors.New("unreadable")
	checks := []Check[int]{
		{Name: "Small", Run: func(n int) []Failure {
			if n < 10 {
				return nil
			}
			return []Failure{{Machine: "a", Reason: "too large"}, {Machine: "b", Reason: "too large", RetryAfter: time.Second}}
		}},
		{Name: "Even", Run: func(n int) []Failure {
			if n%2 == 0 {
				return nil
			}
			return Because("odd")
		}},
		{Name: "Positive", Run: func(n int) []Failure {
			if n > 0 {
				return nil
			}
			return []Failure{{Err: unreadable}}
		}},
	}
	large := []Failure{{Check: "Small", Machine: "a", Reason: "too large"}, {Check: "Small", Machine: "b", Reason: "too large", RetryAfter: time.Second}}
	odd := Failure{Check: "Even", Reason: "odd"}
	tests := []struct {
		reason string
		of     int
		want   []Failure
	}{
		{reason: "all pass", of: 2},
		{reason: "one fails", of: 3, want: []Failure{odd}},
		{reason: "a check can fail for several Machines, and failures have the order of the checks", of: 11, want: append(large, odd)},
		{reason: "a check that could not be made has not passed", of: 0, want: []Failure{{Check: "Positive", Err: unreadable}}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, All(checks, tt.of), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("all (-want +got):\n%s", diff)
			}
			var first *Failure
			if len(tt.want) > 0 {
				first = &tt.want[0]
			}
			if diff := cmp.Diff(first, First(checks, tt.of), cmpopts.EquateErrors()); diff != "" {
				t.Errorf("first (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFirstRunsNoFurtherChecks(t *testing.T) {
	ran := 0
	check := Check[string]{Name: "Fails", Run: func(string) []Failure { ran++; return Because("always") }}
	if First([]Check[string]{check, check}, ""); ran != 1 {
		t.Errorf("%d checks ran, want 1", ran)
	}
}

func TestText(t *testing.T) {
	for want, f := range map[string]Failure{
		"it is away":                {Check: "Reachable", Reason: "it is away"},
		"Machine m: it has no Node": {Check: "Healthy", Machine: "m", Reason: "it has no Node"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
