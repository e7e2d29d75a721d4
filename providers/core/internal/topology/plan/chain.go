package plan

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/topology/upgrade"
)

// UpgradePlans asks an extension, "<handler>.<ExtensionConfig>", for the versions of an upgrade. Equal calls have equal results.
type UpgradePlans interface {
	GenerateUpgradePlan(ctx context.Context, cluster *clusterv1.Cluster, handler string, ends upgrade.Ends) (upgrade.Chain, error)
}

// chain returns the versions that are still to be reached: those of the extension that the class has for that, else of the versions that
// it lists, else directly. It asks the extension as long as there is a step to choose.
func (p *Planner) chain(
	ctx context.Context, cluster *clusterv1.Cluster, class *clusterv1.ClusterClass, in upgrade.Input,
) (chain upgrade.Chain, err error) {
	ends, handler := in.Ends(), class.Spec.Upgrade.External.GenerateUpgradePlanExtension
	switch {
	case !in.ControlPlane.Exists:
		return chain, nil
	case ends.ControlPlane == ends.To || ends.IsDowngrade():
		return ends.Direct(), nil
	case handler != "" && p.Upgrades == nil:
		return chain, fmt.Errorf("ClusterClass %s/%s: extension %s cannot plan the upgrade to %s: it requires the feature gate RuntimeSDK",
			class.Namespace, class.Name, handler, ends.To)
	case handler != "":
		if chain, err = p.Upgrades.GenerateUpgradePlan(ctx, cluster, handler, ends); err != nil {
			return chain, err
		}
		if chain, err = ends.Checked(chain); err != nil {
			return chain, fmt.Errorf("extension %s returned an invalid plan of the upgrade to %s: %w", handler, ends.To, err)
		}
		return chain, nil
	case len(class.Spec.KubernetesVersions) == 0:
		return ends.Direct(), nil
	}
	if chain, err = ends.Listed(class.Spec.KubernetesVersions); err != nil {
		return chain, fmt.Errorf("ClusterClass %s/%s: %w", class.Namespace, class.Name, err)
	}
	return chain, nil
}
