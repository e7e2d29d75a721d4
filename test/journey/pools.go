package journey

import (
	"fmt"
	"slices"

	"github.com/google/go-cmp/cmp"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Pools is true when exactly n Machines of MachinePools exist and run, and the MachinePools count them.
func Pools(n int) Condition {
	return func(p *Snapshot) error {
		if err := running(p.Pooled(), n); err != nil {
			return fmt.Errorf("pools: %w", err)
		}
		var sum clusterv1.MachinePoolStatus
		for i := range p.Pools.Items {
			pool := &p.Pools.Items[i]
			s := &pool.Status
			switch {
			case s.ObservedGeneration != pool.Generation:
				return fmt.Errorf("generation %d of MachinePool %s is not observed", pool.Generation, pool.Name)
			case s.GetTypedPhase() != clusterv1.MachinePoolPhaseRunning || !ConditionIsTrue(pool, clusterv1.ReadyCondition):
				return fmt.Errorf("MachinePool %s is %s", pool.Name, s.Phase)
			case len(s.NodeRefs) != int(s.Replicas) || len(pool.Spec.ProviderIDList) != int(s.Replicas):
				return fmt.Errorf("MachinePool %s has %d replicas, %d Nodes and %d provider IDs",
					pool.Name, s.Replicas, len(s.NodeRefs), len(pool.Spec.ProviderIDList))
			}
			sum.Replicas += s.Replicas
			sum.ReadyReplicas += s.ReadyReplicas
			sum.AvailableReplicas += s.AvailableReplicas
			sum.UnavailableReplicas += s.UnavailableReplicas
		}
		want := clusterv1.MachinePoolStatus{Replicas: int32(n), ReadyReplicas: int32(n), AvailableReplicas: int32(n)}
		if diff := cmp.Diff(want, sum); diff != "" {
			return fmt.Errorf("status of MachinePools (-want +got):\n%s", diff)
		}
		return nil
	}
}

// Pooled returns the Machines of MachinePools, sorted by name, including those that are being deleted.
func (p *Snapshot) Pooled() []clusterv1.Machine {
	return slices.DeleteFunc(p.Workers(), func(m clusterv1.Machine) bool { return m.Labels[clusterv1.MachinePoolNameLabel] == "" })
}

// Deployed returns the other workers, sorted by name, including those that are being deleted.
func (p *Snapshot) Deployed() []clusterv1.Machine {
	return slices.DeleteFunc(p.Workers(), func(m clusterv1.Machine) bool { return m.Labels[clusterv1.MachinePoolNameLabel] != "" })
}

// AvailablePools is true while at least n Machines of MachinePools are available.
func AvailablePools(n int) Condition {
	return func(p *Snapshot) error {
		if have := available(p.Pooled()); have < n {
			return fmt.Errorf("%d Machines of MachinePools are available, want at least %d", have, n)
		}
		return nil
	}
}
