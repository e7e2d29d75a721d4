package v1alpha2

import (
	"encoding/json"
	"testing"
	"time"
)

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		reason, raw string
		argument    Argument
		duration    time.Duration
		isDuration  bool
	}{
		{"a string", `"11m"`, "11m", 11 * time.Minute, true},
		{"a number", `660`, "660", 11 * time.Minute, true},
		{"a number in quotes", `"660"`, "660", 11 * time.Minute, true},
		{"a large number", `3000000000`, "3000000000", 3000000000 * time.Second, true},
		{"no duration", `"soon"`, "soon", 0, false},
		{"nothing", `null`, "", 0, true},
		{"what the API server rejects", `["a"]`, `["a"]`, 0, false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var a Argument
			var d Duration
			for _, err := range []error{json.Unmarshal([]byte(tc.raw), &a), json.Unmarshal([]byte(tc.raw), &d)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			parsed, err := d.Parse()
			if a != tc.argument || parsed != tc.duration || (err == nil) != tc.isDuration {
				t.Errorf("argument %q, duration %s, error %v", a, parsed, err)
			}
		})
	}
}
