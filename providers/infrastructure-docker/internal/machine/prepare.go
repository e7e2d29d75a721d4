package machine

import (
	"context"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// prepare waits for the prerequisites of a container. A machine that had its container no longer depends on them.
//
// A new machine does not report the wait at once: see step.Progress.
func (c *Controller) prepare(_ context.Context, s *scope) (step.Result, error) {
	switch {
	case s.HadContainer():
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return step.Wait("the infrastructure of Cluster " + s.cluster.Name).Because(dockerv1.WaitingForClusterInfrastructureV1Beta1Reason), nil
	case s.data != "":
	case !s.IsControlPlane() && !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition):
		return step.Wait("the control plane to be initialized").Because(dockerv1.WaitingForControlPlaneAvailableV1Beta1Reason), nil
	default:
		return step.Wait("the bootstrap data of Machine " + s.machine.Name).Because(dockerv1.WaitingForBootstrapDataV1Beta1Reason), nil
	}
	return step.Done().KeepCondition(), nil
}

// bootstrapData returns the name of the Secret with the bootstrap data of a Machine, empty if it does not exist yet.
func (c *Controller) bootstrapData(ctx context.Context, m *clusterv1.Machine) (string, error) {
	switch {
	case m == nil:
		return "", nil
	case !c.pools:
		return ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""), nil
	}
	return machinepool.BootstrapData(ctx, c.Client, m)
}
