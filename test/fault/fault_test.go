package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/cluster-api/test/env"
	"sigs.k8s.io/cluster-api/test/fault/campaign"
	"sigs.k8s.io/cluster-api/test/fault/report"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
	"sigs.k8s.io/cluster-api/test/fault/world"
)

// TestSample makes a few runs of every scenario. `make fault` makes all.
func TestSample(t *testing.T) {
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "bin", "capim-manager")); err != nil {
		if os.Getenv("CI") != "" || os.Getenv(env.RequireVariable) != "" {
			t.Fatal("this test needs the programs: run `make bin/capi managers`")
		}
		t.Skip("this test needs the programs: run `make bin/capi managers`")
	}
	w, err := world.Start(t.Context(), root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	out := &bytes.Buffer{}
	c := &campaign.Campaign{
		Runner: &campaign.Runner{World: w, Rest: 5 * time.Second}, Scenarios: scenario.All(), Families: campaign.Families(),
		Most: 1, Seed: 1, Batch: 10, Out: out,
	}
	results, err := c.Run(t.Context())
	violations, _ := report.Print(out, results)
	t.Log("\n" + out.String())
	if err != nil || violations > 0 {
		t.Errorf("%d violations, %v", violations, err)
	}
}
