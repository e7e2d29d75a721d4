package lifecycle

import (
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/internal/extension"
)

// Message returns the hook of a call, its request, and an empty response.
func Message(
	cluster *clusterv1.Cluster, call Call,
) (runtimecatalog.Hook, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject, error) {
	sent := extension.Sent(cluster)
	switch call.Hook {
	case BeforeClusterCreate:
		return runtimehooksv1.BeforeClusterCreate,
			&runtimehooksv1.BeforeClusterCreateRequest{Cluster: sent}, &runtimehooksv1.BeforeClusterCreateResponse{}, nil
	case AfterControlPlaneInitialized:
		return runtimehooksv1.AfterControlPlaneInitialized, &runtimehooksv1.AfterControlPlaneInitializedRequest{Cluster: sent},
			&runtimehooksv1.AfterControlPlaneInitializedResponse{}, nil
	case BeforeClusterUpgrade, BeforeControlPlaneUpgrade, AfterControlPlaneUpgrade, BeforeWorkersUpgrade, AfterWorkersUpgrade,
		AfterClusterUpgrade:
		hook, request, response := upgradeMessage(sent, call)
		return hook, request, response, nil
	case BeforeClusterDelete:
		return runtimehooksv1.BeforeClusterDelete,
			&runtimehooksv1.BeforeClusterDeleteRequest{Cluster: sent}, &runtimehooksv1.BeforeClusterDeleteResponse{}, nil
	}
	return nil, nil, nil, fmt.Errorf("unknown lifecycle hook %q", call.Hook)
}

// upgradeMessage is Message of the hooks of upgrades.
func upgradeMessage(
	sent clusterv1.Cluster, call Call,
) (runtimecatalog.Hook, runtimehooksv1.RequestObject, runtimehooksv1.ResponseObject) {
	controlPlane, workers := stepsOf(call.Remaining.ControlPlane), stepsOf(call.Remaining.Workers)
	switch call.Hook {
	case BeforeClusterUpgrade:
		return runtimehooksv1.BeforeClusterUpgrade, &runtimehooksv1.BeforeClusterUpgradeRequest{
			Cluster: sent, FromKubernetesVersion: call.From, ToKubernetesVersion: call.To,
			ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &runtimehooksv1.BeforeClusterUpgradeResponse{}
	case BeforeControlPlaneUpgrade:
		return runtimehooksv1.BeforeControlPlaneUpgrade, &runtimehooksv1.BeforeControlPlaneUpgradeRequest{
			Cluster: sent, FromKubernetesVersion: call.From, ToKubernetesVersion: call.To,
			ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &runtimehooksv1.BeforeControlPlaneUpgradeResponse{}
	case AfterControlPlaneUpgrade:
		return runtimehooksv1.AfterControlPlaneUpgrade, &runtimehooksv1.AfterControlPlaneUpgradeRequest{
			Cluster: sent, KubernetesVersion: call.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &runtimehooksv1.AfterControlPlaneUpgradeResponse{}
	case BeforeWorkersUpgrade:
		return runtimehooksv1.BeforeWorkersUpgrade, &runtimehooksv1.BeforeWorkersUpgradeRequest{
			Cluster: sent, FromKubernetesVersion: call.From, ToKubernetesVersion: call.To,
			ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &runtimehooksv1.BeforeWorkersUpgradeResponse{}
	case AfterWorkersUpgrade:
		return runtimehooksv1.AfterWorkersUpgrade, &runtimehooksv1.AfterWorkersUpgradeRequest{
			Cluster: sent, KubernetesVersion: call.To, ControlPlaneUpgrades: controlPlane, WorkersUpgrades: workers,
		}, &runtimehooksv1.AfterWorkersUpgradeResponse{}
	default:
		return runtimehooksv1.AfterClusterUpgrade, &runtimehooksv1.AfterClusterUpgradeRequest{Cluster: sent, KubernetesVersion: call.To},
			&runtimehooksv1.AfterClusterUpgradeResponse{}
	}
}

func stepsOf(versions []string) []runtimehooksv1.UpgradeStepInfo {
	var steps []runtimehooksv1.UpgradeStepInfo
	for _, version := range versions {
		steps = append(steps, runtimehooksv1.UpgradeStepInfo{Version: version})
	}
	return steps
}
