package hook

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func (h *Handlers) beforeControlPlaneUpgrade(
	ctx context.Context, request *hooksv1.BeforeControlPlaneUpgradeRequest, response *hooksv1.BeforeControlPlaneUpgradeResponse,
) {
	h.lifecycle(ctx, "BeforeControlPlaneUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) beforeWorkersUpgrade(
	ctx context.Context, request *hooksv1.BeforeWorkersUpgradeRequest, response *hooksv1.BeforeWorkersUpgradeResponse,
) {
	h.lifecycle(ctx, "BeforeWorkersUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) afterWorkersUpgrade(
	ctx context.Context, request *hooksv1.AfterWorkersUpgradeRequest, response *hooksv1.AfterWorkersUpgradeResponse,
) {
	h.lifecycle(ctx, "AfterWorkersUpgrade", request, &request.Cluster, response)
}

func (h *Handlers) generateUpgradePlan(
	ctx context.Context, request *hooksv1.GenerateUpgradePlanRequest, response *hooksv1.GenerateUpgradePlanResponse,
) {
	cluster := types.NamespacedName{Namespace: request.Cluster.Namespace, Name: request.Cluster.Name}
	a, ok := h.answer(ctx, "GenerateUpgradePlan", request.Settings, cluster, response)
	if !ok {
		return
	}
	var err error
	to := request.ToKubernetesVersion
	response.ControlPlaneUpgrades, err = between(request.FromControlPlaneKubernetesVersion, to, a.ControlPlaneUpgrades)
	if err == nil && len(a.WorkersUpgrades) > 0 && request.FromWorkersKubernetesVersion != "" {
		response.WorkersUpgrades, err = between(request.FromWorkersKubernetesVersion, to, a.WorkersUpgrades)
	}
	if err != nil {
		fail(response, err)
	}
}

// between returns the versions that an upgrade goes through, ascending, to the last one.
func between(from, to string, versions []string) ([]hooksv1.UpgradeStep, error) {
	first, err := version.ParseSemantic(from)
	if err != nil {
		return nil, fmt.Errorf("invalid version to upgrade from: %w", err)
	}
	last, err := version.ParseSemantic(to)
	if err != nil {
		return nil, fmt.Errorf("invalid version to upgrade to: %w", err)
	}
	parsed := map[string]*version.Version{to: last}
	for _, v := range versions {
		p, err := version.ParseSemantic(v)
		if err != nil {
			return nil, err // Answers were validated.
		}
		if first.LessThan(p) && p.LessThan(last) {
			parsed[v] = p
		}
	}
	steps := make([]hooksv1.UpgradeStep, 0, len(parsed))
	for v := range parsed {
		steps = append(steps, hooksv1.UpgradeStep{Version: v})
	}
	slices.SortFunc(steps, func(a, b hooksv1.UpgradeStep) int {
		if parsed[a.Version].LessThan(parsed[b.Version]) {
			return -1
		}
		return 1
	})
	return steps, nil
}
