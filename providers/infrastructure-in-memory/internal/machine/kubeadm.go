package machine

import (
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// kubeadmConfigName is the ConfigMap in which kubeadm stores its configuration, and clusterConfigurationKey its key.
const kubeadmConfigName, clusterConfigurationKey = "kubeadm-config", "ClusterConfiguration"

// kubeadm retries every few seconds, and gives up after minutes. No event can trigger it, because the machine does not watch
// the cluster.
const (
	kubeadmRetry   = 5 * time.Second
	kubeadmTimeout = 5 * time.Minute
)

// kubeadmFails reports why kubeadm fails, and retries until the timeout.
func (c *Controller) kubeadmFails(s *scope, t clusterv1.ConditionType, why error) (step.Result, error) {
	before := condition.Get(s.obj.Object, t)
	if before != nil && before.Reason == inmemoryv1.KubeadmFailedReason && c.Clock.Since(before.LastTransitionTime.Time) >= kubeadmTimeout {
		return step.Stop().WithConditions(condition.False(t, clusterv1.ConditionSeverityError, inmemoryv1.KubeadmFailedReason,
			"kubeadm gave up: %v", why)), nil
	}
	return step.WaitAtMost(kubeadmRetry, "kubeadm to succeed").WithConditions(
		condition.False(t, clusterv1.ConditionSeverityWarning, inmemoryv1.KubeadmFailedReason, "kubeadm fails: %v", why)), nil
}

// gaveUp reports whether kubeadm gave up. It never retries on this machine.
func gaveUp(obj kinds.Machine, t clusterv1.ConditionType) bool {
	c := condition.Get(obj.Object, t)
	return c != nil && c.Reason == inmemoryv1.KubeadmFailedReason && c.Severity == clusterv1.ConditionSeverityError
}
