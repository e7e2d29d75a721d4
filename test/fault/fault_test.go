package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/recorded"
	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// root is the root of the repository.
const root = "../.."

// TestSample executes one run per kind of faults for some scenarios. `make fault` executes all runs.
func TestSample(t *testing.T) {
	for _, tc := range []struct {
		reason              string
		soak, recorded      bool
		scenarios, families []string
	}{
		{
			reason:    "the faults that found most bugs, where most decisions are made",
			scenarios: []string{"upgrade-1x1"}, families: []string{"kill", "stale", "leaders"},
		},
		{
			reason:    "the operator is killed after every eighth write",
			scenarios: []string{"operator-upgrade"}, families: []string{"kills"},
		},
		{
			reason: "all kinds of faults", soak: true,
			scenarios: []string{"create-1x1", "upgrade-1x1", "workers-down", "control-plane-down", "remediate-control-plane", "dead-zone", "delete-1x1", "turned-1x1"},
			families:  []string{"kill", "ambiguous", "stale", "leaders", "partition", "mixed"},
		},
		{
			reason: "Clusters of another version are taken over in the middle of an operation", soak: true, recorded: true,
			scenarios: []string{"takeover-creating", "takeover-upgrading", "takeover-scaling", "takeover-deleting"},
			families:  []string{"kill", "ambiguous", "stale", "leaders", "partition", "mixed"},
		},
		{
			reason: "backups of etcd, a restore, a recovery without a quorum, and a rotation of authorities", soak: true,
			scenarios: []string{"backups-1x1", "restore-1x1", "recover-3x1", "rotate-authorities-1x1"},
			families:  []string{"kill", "ambiguous", "stale", "leaders", "partition", "mixed", "kills"},
		},
		{
			reason: "several faults of the operator, or another leader", soak: true,
			scenarios: []string{"operator-upgrade"}, families: []string{"mixed", "leaders"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			if tc.soak {
				testenv.Soak(t)
			}
			if err := scenario.CheckRecords(t.Context(), root); tc.recorded && errors.Is(err, recorded.ErrAbsent) {
				t.Skip(err)
			}
			t.Parallel()
			families := slices.DeleteFunc(campaign.Families(), func(f campaign.Family) bool { return !slices.Contains(tc.families, f.Name) })
			if len(families) != len(tc.families) {
				t.Fatalf("%d families of faults, want %v", len(families), tc.families)
			}
			sample(t, tc.scenarios, families)
		})
	}
}

// sample executes one run of each scenario and kind of faults.
func sample(t *testing.T, names []string, families []campaign.Family) {
	t.Helper()
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
	violations, _ := campaign.Report(out, results)
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
