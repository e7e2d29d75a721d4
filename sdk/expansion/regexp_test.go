package expansion

import (
	"errors"
	"strings"
	"testing"
)

func TestRegexpSize(t *testing.T) {
	for _, tc := range []struct {
		reason, expression string
		tooBig             bool
	}{
		{"a version", `^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-+][0-9A-Za-z.+-]*)?$`, false},
		{"a name of 63 characters, in groups", `^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){0,5}[a-z]{2,63}$`, false},
		{"a long repetition", `^.{1,1000}$`, false},
		{"many long repetitions", strings.Repeat("x{1000}", 30), true},
		{"repetitions within repetitions", strings.Repeat("((x{10}){10}){10}", 30), true},
		{"a long text", strings.Repeat("x", MaxRegexp+1), true},
	} {
		_, err := RegexpSize(tc.expression)
		var tooBig *RegexpTooBigError
		if errors.As(err, &tooBig) != tc.tooBig || (err != nil && !tc.tooBig) {
			t.Errorf("%s: error is %v, want a RegexpTooBigError: %t", tc.reason, err, tc.tooBig)
		}
	}
	if _, err := RegexpSize("("); err == nil {
		t.Error("an invalid expression has a size")
	}
}
