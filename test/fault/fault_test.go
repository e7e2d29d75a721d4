package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/test/env"
	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/report"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// sampled are the scenarios of TestSample. Workers-down belongs here as soon as it never fails: killed while it puts labels
// on Nodes, the core manager has once not finished scaling down in time. And sampleTime is when it begins no further run.
func sampled() []string {
	return []string{"create-1x1", "upgrade-1x1", "control-plane-down", "remediate-control-plane", "delete-1x1"}
}

const sampleTime = 6 * time.Minute

// TestSample makes one run with each kind of faults of some scenarios. `make fault` makes all.
func TestSample(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "bin", "capim-manager")); err != nil {
		if os.Getenv("CI") != "" || os.Getenv(env.RequireVariable) != "" {
			t.Fatal("this test needs the programs: run `make bin/capi managers`")
		}
		t.Skip("this test needs the programs: run `make bin/capi managers`")
	}
	scenarios, err := chosen(scenario.All(), func(s scenario.Scenario) string { return s.Name }, strings.Join(sampled(), ","))
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	c := &campaign.Campaign{
		Root: root, Dir: t.TempDir(), Scenarios: scenarios, Families: campaign.Families(),
		Most: 1, Seed: 1, Batch: 10, Rest: 3 * time.Second, Until: time.Now().Add(sampleTime), Out: out,
	}
	results, err := c.Run(t.Context())
	violations, _ := report.Print(out, results)
	t.Log("\n" + out.String())
	if err != nil || violations > 0 {
		t.Errorf("%d violations, %v", violations, err)
	}
}
