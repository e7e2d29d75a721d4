package faults

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTooManyDeadMachines(t *testing.T) {
	if err := (Faults{DeadMachines: make([]string, maxDeadMachines+1)}).Validate(); err == nil {
		t.Error("too many dead machines must be an error")
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		reason, text string
		want         Faults
		fails        bool
	}{
		{"healthy", `{}`, Faults{}, false},
		{"all", `{"latency":"1s","errorRate":0.5,"unresponsive":true,"deadMachines":["a"]}`,
			Faults{Latency: metav1.Duration{Duration: time.Second}, ErrorRate: 0.5, Unresponsive: true, DeadMachines: []string{"a"}}, false},
		{"an old cluster", `{"emulate":"v1.7"}`, Faults{Emulate: EmulateV17}, false},
		{"an unknown one", `{"emulate":"v1.6"}`, Faults{Emulate: "v1.6"}, true},
		{"interrupted snapshots", `{"snapshot":"interrupted"}`, Faults{Snapshot: SnapshotInterrupted}, false},
		{"corrupt snapshots", `{"snapshot":"corrupt"}`, Faults{Snapshot: SnapshotCorrupt}, false},
		{"snapshots with an unknown fault", `{"snapshot":"slow"}`, Faults{Snapshot: "slow"}, true},
		{"a latency of days", `{"latency":"100h"}`, Faults{Latency: metav1.Duration{Duration: 100 * time.Hour}}, true},
		{"a misspelled fault", `{"latencyy":"1s"}`, Faults{}, true},
		{"an error rate above 1", `{"errorRate":2}`, Faults{ErrorRate: 2}, true},
		{"a negative latency", `{"latency":"-1s"}`, Faults{Latency: metav1.Duration{Duration: -time.Second}}, true},
	} {
		got, err := Parse(test.text)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
			t.Errorf("%s: %v %s", test.reason, err, diff)
		}
	}
}
