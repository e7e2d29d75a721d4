package mutation_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/sdk/testenv"
)

// TestGenerateUpgradePlan is about what is sent, how often, and what becomes of answers.
func TestGenerateUpgradePlan(t *testing.T) {
	w := newWorld(t, nil)
	cluster := call().Cluster
	ends := upgrade.Ends{ControlPlane: "v1.30.0", Workers: "v1.29.0", To: "v1.32.0"}
	chain := []string{"v1.31.0", "v1.32.0"}
	var bodies [][]byte
	for _, step := range []struct {
		reason string
		event  func()
		want   []string
		err    string
		calls  int
	}{
		{"an extension that reports a failure", func() { w.status = "Failure" }, nil, "reported a failure: a message", 1},
		{"too many versions", func() { w.status = "Success"; w.answer(101) }, nil, "returned an upgrade plan of 101 versions: at most 100 are possible", 1},
		{"an answer", func() { w.upgrades = []any{map[string]any{"version": "v1.31.0"}, map[string]any{"version": "v1.32.0"}} }, chain, "", 1},
		{"it is used again", func() { w.answer(1) }, chain, "", 0},
		{"until an input changes", func() { ends.ControlPlane = "v1.31.0" }, []string{"v1.0.0"}, "", 1},
		{"or the Cluster", func() { cluster.Generation++; w.answer(2) }, []string{"v1.0.0", "v1.1.0"}, "", 1},
	} {
		step.event()
		got, err := w.GenerateUpgradePlan(t.Context(), cluster, "generateupgradeplan.x", ends)
		if diff := cmp.Diff(step.want, got.ControlPlane); diff != "" || (err == nil) != (step.err == "") || err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: %v\n%s", step.reason, err, diff)
		}
		calls := w.server.Calls()
		if len(calls) != step.calls {
			t.Errorf("%s: %d calls, want %d", step.reason, len(calls), step.calls)
		}
		for _, call := range calls {
			bodies = append(bodies, []byte(call.Body))
		}
	}
	var request runtimehooksv1.GenerateUpgradePlanRequest
	testenv.Must(t, json.Unmarshal(bodies[0], &request))
	sent := []string{request.Cluster.Name, request.FromControlPlaneKubernetesVersion, request.FromWorkersKubernetesVersion, request.ToKubernetesVersion}
	if diff := cmp.Diff([]string{"c", "v1.30.0", "v1.29.0", "v1.32.0"}, sent); diff != "" {
		t.Errorf("request:\n%s", diff)
	}
	if _, err := w.GenerateUpgradePlan(t.Context(), cluster, "missing.x", ends); err == nil {
		t.Error("an extension that does not exist: want an error")
	}
}

// answer makes the extension answer with a number of versions.
func (w *world) answer(n int) {
	w.upgrades = nil
	for minor := range n {
		w.upgrades = append(w.upgrades, map[string]any{"version": fmt.Sprintf("v1.%d.0", minor)})
	}
}
