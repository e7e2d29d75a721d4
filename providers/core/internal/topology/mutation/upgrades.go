package mutation

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// maxUpgrades limits the versions in a response: Kubernetes has far fewer, and each is a step.
const maxUpgrades = 100

// GenerateUpgradePlan returns the versions of an upgrade that an extension chooses; they are not validated. Answers are used again until
// the Cluster changes. A failure that the failure policy ignores is an error all the same: without an answer, there is no plan.
func (c *Caller) GenerateUpgradePlan(
	ctx context.Context, cluster *clusterv1.Cluster, handler string, ends upgrade.Ends,
) (upgrade.Chain, error) {
	none := upgrade.Chain{}
	target, err := c.extensions.Find(ctx, runtimehooksv1.GenerateUpgradePlan, cluster, handler)
	if err != nil {
		return none, err
	}
	q, err := questionOf(target, nil, []any{"GenerateUpgradePlan", cluster.UID, cluster.Generation, ends})
	if err != nil {
		return none, err
	}
	known := c.answers.get(q)
	if known.valid {
		return known.upgrades, nil
	}
	request := &runtimehooksv1.GenerateUpgradePlanRequest{
		Cluster: extension.Sent(cluster), ToKubernetesVersion: ends.To,
		FromControlPlaneKubernetesVersion: ends.ControlPlane, FromWorkersKubernetesVersion: ends.Workers,
	}
	response, found := &runtimehooksv1.GenerateUpgradePlanResponse{}, answer{}
	ignored, err := target.Call(ctx, nil, request, response, func() error {
		if n := len(response.ControlPlaneUpgrades) + len(response.WorkersUpgrades); n > maxUpgrades {
			return fmt.Errorf("extension %s returned an upgrade plan of %d versions: at most %d are possible", handler, n, maxUpgrades)
		}
		found.upgrades = upgrade.Chain{ControlPlane: versionsOf(response.ControlPlaneUpgrades), Workers: versionsOf(response.WorkersUpgrades)}
		return nil
	})
	switch {
	case err != nil:
		return none, err
	case ignored:
		return none, fmt.Errorf("extension %s returned no upgrade plan", handler)
	}
	c.answers.put(q, found, target.Cacheable())
	return found.upgrades, nil
}

func versionsOf(steps []runtimehooksv1.UpgradeStep) []string {
	var versions []string
	for _, step := range steps {
		versions = append(versions, step.Version)
	}
	return versions
}
