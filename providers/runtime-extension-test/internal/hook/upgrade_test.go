package hook

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

func TestGenerateUpgradePlan(t *testing.T) {
	steps := func(versions ...string) []hooksv1.UpgradeStep {
		var out []hooksv1.UpgradeStep
		for _, v := range versions {
			out = append(out, hooksv1.UpgradeStep{Version: v})
		}
		return out
	}
	for _, tc := range []struct {
		reason, answer, from, workers, to string
		wantPlane, wantWorkers            []hooksv1.UpgradeStep
		err                               string
	}{
		{reason: "without an answer, there is one step", from: "v1.34.4", workers: "v1.34.4", to: "v1.35.4", wantPlane: steps("v1.35.4")},
		{
			reason: "of all versions, those between are used, in order", answer: "controlPlaneUpgrades: [v1.36.3, v1.35.10, v1.35.4, v1.34.4, v1.33.1]",
			from: "v1.34.4", workers: "v1.34.4", to: "v1.36.3", wantPlane: steps("v1.35.4", "v1.35.10", "v1.36.3"),
		},
		{
			reason: "workers begin with their own version", answer: "{controlPlaneUpgrades: [v1.35.4], workersUpgrades: [v1.34.4, v1.35.4]}",
			from: "v1.35.4", workers: "v1.33.1", to: "v1.36.3", wantPlane: steps("v1.36.3"), wantWorkers: steps("v1.34.4", "v1.35.4", "v1.36.3"),
		},
		{reason: "a Cluster may have no workers", answer: "workersUpgrades: [v1.35.4]", from: "v1.35.4", to: "v1.36.3", wantPlane: steps("v1.36.3")},
		{
			reason: "a failure has no plan", answer: "{status: Failure, message: unplanned, controlPlaneUpgrades: [v1.35.4]}",
			from: "v1.35.4", to: "v1.36.3", err: "unplanned",
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := handlers(texts{"ns/c-test-extension GenerateUpgradePlan": tc.answer})
			request := &hooksv1.GenerateUpgradePlanRequest{
				FromControlPlaneKubernetesVersion: tc.from, FromWorkersKubernetesVersion: tc.workers, ToKubernetesVersion: tc.to,
			}
			request.Cluster.Namespace, request.Cluster.Name = "ns", "c"
			got, want := &hooksv1.GenerateUpgradePlanResponse{}, &hooksv1.GenerateUpgradePlanResponse{}
			h.generateUpgradePlan(t.Context(), request, got)
			want.ControlPlaneUpgrades, want.WorkersUpgrades = tc.wantPlane, tc.wantWorkers
			if want.Status, want.Message = hooksv1.ResponseStatusSuccess, tc.err; tc.err != "" {
				want.Status = hooksv1.ResponseStatusFailure
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
		})
	}
}

// TestStepsBlock: the hooks of the steps of an upgrade block like those of the whole.
func TestStepsBlock(t *testing.T) {
	h := handlers(texts{
		"ns/c-test-extension BeforeControlPlaneUpgrade": "{message: a, retryAfterSeconds: 1}",
		"ns/c-test-extension BeforeWorkersUpgrade":      "{message: b, retryAfterSeconds: 2}",
		"ns/c-test-extension AfterWorkersUpgrade":       "{message: c, retryAfterSeconds: 3}",
	})
	plane, planeResponse := &hooksv1.BeforeControlPlaneUpgradeRequest{}, &hooksv1.BeforeControlPlaneUpgradeResponse{}
	before, beforeResponse := &hooksv1.BeforeWorkersUpgradeRequest{}, &hooksv1.BeforeWorkersUpgradeResponse{}
	after, afterResponse := &hooksv1.AfterWorkersUpgradeRequest{}, &hooksv1.AfterWorkersUpgradeResponse{}
	plane.Cluster.Namespace, plane.Cluster.Name = "ns", "c"
	before.Cluster, after.Cluster = plane.Cluster, plane.Cluster
	h.beforeControlPlaneUpgrade(t.Context(), plane, planeResponse)
	h.beforeWorkersUpgrade(t.Context(), before, beforeResponse)
	h.afterWorkersUpgrade(t.Context(), after, afterResponse)
	for i, r := range []hooksv1.CommonRetryResponse{planeResponse.CommonRetryResponse, beforeResponse.CommonRetryResponse, afterResponse.CommonRetryResponse} {
		want := hooksv1.CommonRetryResponse{RetryAfterSeconds: int32(i + 1)}
		want.Status, want.Message = hooksv1.ResponseStatusSuccess, string(rune('a'+i))
		if diff := cmp.Diff(want, r); diff != "" {
			t.Errorf("response %d (-want +got):\n%s", i, diff)
		}
	}
}

// TestAllHooksAreServed: each hook of the catalog has a handler, and later hooks have requests in v1beta2.
func TestAllHooksAreServed(t *testing.T) {
	catalog, err := NewCatalog()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{Catalog: catalog})
	if err != nil {
		t.Fatal(err)
	}
	if err := handlers(texts{}).AddTo(s); err != nil {
		t.Fatal(err)
	}
	meta, err := catalog.Meta(mustName(t, catalog, hooksv1.UpdateMachine))
	if err != nil || meta.PayloadVersion != "v1beta2" {
		t.Errorf("requests of UpdateMachine are in %q, want v1beta2: %v", meta.PayloadVersion, err)
	}
}
