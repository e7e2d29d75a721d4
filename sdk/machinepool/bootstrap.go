package machinepool

import (
	"context"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// BootstrapData returns the name of the Secret with the bootstrap data of a Machine, empty if it does not exist yet. The Machines of a
// MachinePool have none of their own, but share the pool's current one.
func BootstrapData(ctx context.Context, from client.Reader, m *clusterv1.Machine) (string, error) {
	if name := ptr.Deref(m.Spec.Bootstrap.DataSecretName, ""); name != "" {
		return name, nil
	}
	pool, err := ownership.MachinePoolOf(ctx, from, m)
	if err != nil || pool == nil {
		return "", err
	}
	return ptr.Deref(pool.Spec.Template.Spec.Bootstrap.DataSecretName, ""), nil
}

// Bootstrapped selects created MachinePools, and those whose bootstrap data becomes available: infrastructure machines may wait for it.
func Bootstrapped() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Updated(func(before, after *clusterv1.MachinePool) bool {
		was, is := before.Spec.Template.Spec.Bootstrap.DataSecretName, after.Spec.Template.Spec.Bootstrap.DataSecretName
		return ptr.Deref(was, "") == "" && ptr.Deref(is, "") != ""
	}))
}
