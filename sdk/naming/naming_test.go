package naming

import (
	"strings"
	"testing"
)

func TestSuffix(t *testing.T) {
	if a, b := Suffix("uid", "1"), Suffix("uid", "1"); a != b {
		t.Errorf("the same object gets the same suffix, got %q and %q", a, b)
	}
	if a, b := Suffix("uid", "1"), Suffix("uid1"); a == b {
		t.Errorf("parts are kept apart, both are %q", a)
	}
	seen := map[string]bool{}
	for i := range 1000 {
		s := Suffix("uid", strings.Repeat("x", i))
		if len(s) != 5 || strings.Trim(s, alphabet) != "" {
			t.Fatalf("suffix %q is not five characters of the alphabet", s)
		}
		seen[s] = true
	}
	if len(seen) < 995 {
		t.Errorf("only %d of 1000 suffixes differ", len(seen))
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 70)
	cases := map[string]struct {
		reason, got, want string
	}{
		"Short":     {reason: "base and suffix are joined by a dash", got: WithSuffix("c1", "bcdfg"), want: "c1-bcdfg"},
		"Long":      {reason: "a long base is cut to 58 characters", got: WithSuffix(long, "bcdfg"), want: long[:58] + "bcdfg"},
		"Label":     {reason: "a valid label value is kept", got: LabelValue("md-0"), want: "md-0"},
		"LongLabel": {reason: "a name too long for a label is hashed", got: LabelValue(long), want: "hash_WQR0Cw_z"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, tc.got, tc.want)
			}
		})
	}
}
