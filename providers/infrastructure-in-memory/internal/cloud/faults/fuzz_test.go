package faults

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParse checks that valid faults are within limits, and that parsing reverses encoding.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"latency":"100ms"}`, `{"latency":"-1s"}`, `{"latency":1}`, `{"latency":"9999999h"}`,
		`{"errorRate":0.5}`, `{"errorRate":1e400}`, `{"errorRate":-0}`, `{"unresponsive":true}`, `{"emulate":"v1.7"}`,
		`{"deadMachines":["a","é",""]}`,
		`{"latency":"1s"}{}`, `null`, `[]`, `{"other":1}`, ``, `{"errorRate":1,"errorRate":2}`, `{"LATENCY":"1s"}`, "{}\n\n", "{} x",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := Parse(text)
		if err != nil {
			return
		}
		d := faults.Latency.Duration
		if d < 0 || d > maxLatency || !(faults.ErrorRate >= 0 && faults.ErrorRate <= 1) || len(faults.DeadMachines) > maxDeadMachines {
			t.Errorf("%q is parsed as %+v", text, faults)
		}
		written, err := json.Marshal(faults)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(string(written))
		if err != nil || !faults.Equal(again) {
			t.Errorf("%q, encoded as %s: %v\n%s", text, written, err, cmp.Diff(faults, again))
		}
	})
}
