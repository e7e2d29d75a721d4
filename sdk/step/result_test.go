package step

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// trace is a scope that notes which steps ran.
type trace struct{ ran []string }

func noting(name string, r Result, err error) Step[*trace] {
	return Do(name, func(_ context.Context, t *trace) (Result, error) {
		t.ran = append(t.ran, name)
		return r, err
	})
}

func TestRun(t *testing.T) {
	broken := errors.New("broken")
	type want struct {
		ran     string
		waiting string
		after   time.Duration
		err     string
	}
	cases := map[string]struct {
		reason string
		steps  []Step[*trace]
		want   want
	}{
		"AllDone": {
			reason: "steps that are done, or a checkpoint, are followed by the next one",
			steps:  []Step[*trace]{noting("a", Done(), nil), noting("b", Checkpoint(), nil), noting("c", Done(), nil)},
			want:   want{ran: "a b c"},
		},
		"Waits": {
			reason: "what follows a wait cannot be done yet, and an earlier deadline is kept",
			steps:  []Step[*trace]{noting("a", Again(time.Minute), nil), noting("b", WaitAtMost(time.Hour, "a machine"), nil), noting("c", Done(), nil)},
			want:   want{ran: "a b", waiting: "a machine", after: time.Minute},
		},
		"Stops": {
			reason: "a stop ends the list without a word",
			steps:  []Step[*trace]{noting("a", Stop(), nil), noting("b", Done(), nil)},
			want:   want{ran: "a"},
		},
		"Fails": {
			reason: "an error ends the list and keeps deadlines of earlier steps",
			steps:  []Step[*trace]{noting("a", Again(time.Minute), nil), noting("b", Done(), broken), noting("c", Done(), nil)},
			want:   want{ran: "a b", after: time.Minute, err: "broken"},
		},
		"AllGoesOn": {
			reason: "All runs every step regardless of the others, and returns the earliest deadline",
			steps: []Step[*trace]{All(
				noting("a", Done(), broken), noting("b", WaitAtMost(time.Hour, "b"), nil), noting("c", Again(time.Second), nil),
			), noting("d", Done(), nil)},
			want: want{ran: "a b c", waiting: "b", after: time.Second, err: "broken"},
		},
		"AllWaits": {
			reason: "a list does not go on when one step of All waits",
			steps:  []Step[*trace]{All(noting("a", Wait("x"), nil), noting("b", Done(), nil)), noting("c", Done(), nil)},
			want:   want{ran: "a b", waiting: "x"},
		},
		"AllStops": {
			reason: "All stops when all of its steps stop",
			steps:  []Step[*trace]{All(noting("a", Stop(), nil), noting("b", Stop(), nil)), noting("c", Done(), nil)},
			want:   want{ran: "a b"},
		},
		"SomeStop": {
			reason: "All continues if one of its steps does not stop",
			steps:  []Step[*trace]{All(noting("a", Stop(), nil), noting("b", Done(), nil)), noting("c", Done(), nil)},
			want:   want{ran: "a b c"},
		},
		"When": {
			reason: "When skips its steps if the condition does not hold, and the list continues",
			steps: []Step[*trace]{
				When(func(*trace) bool { return false }, noting("a", Stop(), nil)),
				When(func(*trace) bool { return true }, noting("b", Done(), nil)), noting("c", Done(), nil),
			},
			want: want{ran: "b c"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &trace{}
			r, err := Run(context.Background(), s, tc.steps...)
			got := want{ran: strings.Join(s.ran, " "), waiting: r.Waiting(), after: r.After()}
			if err != nil {
				got.err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestIsStale(t *testing.T) {
	things := schema.GroupResource{Resource: "things"}
	conflict := apierrors.NewConflict(things, "x", errors.New("old"))
	exists := apierrors.NewAlreadyExists(things, "x")
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Conflict": {reason: "the object moved on", err: conflict, want: true},
		"Joined":   {reason: "several errors are stale when all are", err: errors.Join(conflict, exists), want: true},
		"Mixed":    {reason: "one error that is not stale must be reported", err: errors.Join(conflict, errors.New("real")), want: false},
		"Other":    {reason: "anything else is not stale", err: errors.New("real"), want: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsStale(tc.err); got != tc.want {
				t.Errorf("%s: IsStale(%v) = %v, want %v", tc.reason, tc.err, got, tc.want)
			}
		})
	}
}
