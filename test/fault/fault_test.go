package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/report"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// sampled returns the names of the scenarios of TestSample.
func sampled() []string {
	return []string{"create-1x1", "upgrade-1x1", "workers-down", "control-plane-down", "remediate-control-plane", "dead-zone", "delete-1x1"}
}

// TestSample executes one run per kind of faults for some scenarios. `make fault` executes all runs.
func TestSample(t *testing.T) {
	t.Parallel()
	families := slices.DeleteFunc(campaign.Families(), func(f campaign.Family) bool { return f.Operator })
	sample(t, sampled(), families)
}

// TestOperatorSample does the same for the operator: one run kills it after every eighth write, one has faults of several kinds, and one
// changes the leader.
func TestOperatorSample(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"kills", "mixed"}, {"leaders"}} {
		t.Run(names[0], func(t *testing.T) {
			t.Parallel()
			families := slices.DeleteFunc(campaign.Families(), func(f campaign.Family) bool { return !slices.Contains(names, f.Name) })
			sample(t, []string{"operator-upgrade"}, families)
		})
	}
}

// sample executes one run of each scenario and kind of faults.
func sample(t *testing.T, names []string, families []campaign.Family) {
	t.Helper()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "bin", "capim-manager")); err != nil {
		if os.Getenv("CI") != "" || os.Getenv(testenv.RequireVariable) != "" {
			t.Fatal("the programs are required: run `make bin/capi managers`")
		}
		t.Skip("the programs are required: run `make bin/capi managers`")
	}
	scenarios, err := chosen(scenario.All(), func(s scenario.Scenario) string { return s.Name }, strings.Join(names, ","))
	if err != nil {
		t.Fatal(err)
	}
	out := &bytes.Buffer{}
	c := &campaign.Campaign{
		Root: root, Dir: t.TempDir(), Scenarios: scenarios, Families: families,
		Most: 1, Seed: 1, Batch: 10, Rest: 3 * time.Second, Out: out,
	}
	results, err := inWorlds(t.Context(), c, min(2, len(scenarios)))
	violations, _ := report.Print(out, results)
	t.Log("\n" + out.String())
	if err != nil || violations > 0 {
		t.Errorf("%d violations, %v", violations, err)
	}
	// The write at which to inject a fault does not occur in every run.
	injected, runs := map[string]int{}, 0
	for _, r := range results {
		if r.Injected > 0 {
			injected[r.Family]++
			runs++
		}
	}
	for _, family := range c.Families {
		if injected[family.Name] == 0 {
			t.Errorf("no fault of family %s was injected", family.Name)
		}
	}
	if planned := len(scenarios) * len(c.Families); 4*runs < 3*planned {
		t.Errorf("faults were injected in %d of %d runs, want three quarters", runs, planned)
	}
}
