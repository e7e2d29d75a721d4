package step

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestTerminalErrorsDoNotStopOthers(t *testing.T) {
	terminal, transient := Terminal(errors.New("spec is wrong")), errors.New("timeout")
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"Terminal":  {"nothing to try again", terminal, true},
		"Transient": {"it may work next time", transient, false},
		"All":       {"retries fix none of them", errors.Join(terminal, errors.Join(terminal)), true},
		"Mixed":     {"one of them is worth trying again", errors.Join(terminal, transient), false},
		"Nested":    {"the write that reports the terminal one failed", errors.Join(errors.Join(terminal), transient), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := retriable(tc.err)
			if errors.Is(got, reconcile.TerminalError(nil)) != tc.want {
				t.Errorf("%s: %v is terminal: %v", tc.reason, got, !tc.want)
			}
			if got.Error() != tc.err.Error() {
				t.Errorf("the text changed from %q to %q", tc.err, got)
			}
		})
	}
}
