package cloud

import (
	"context"
	"slices"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/faults"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// powerOff sets the state of a dead machine's Node and Pods as a real cluster does once the kubelet has stopped reporting
// for long enough.
func (g *Group) powerOff(e store.Exclusive, machine string) error {
	if err := e.Modify(e.Get(store.Key{Resource: store.Nodes(), Name: machine}), g.power.MarkUnreachable); err != nil {
		return err
	}
	for _, pod := range e.PodsOf(machine) {
		if err := e.Modify(pod, g.power.MarkUnreachable); err != nil {
			return err
		}
	}
	return nil
}

// powerOn restores a machine, if it exists: its terminating Pods are removed, the others are ready again.
func (g *Group) powerOn(e store.Exclusive, machine string) error {
	if !hasKubelet(e, machine) {
		return nil
	}
	if err := e.Modify(e.Get(store.Key{Resource: store.Nodes(), Name: machine}), g.power.markReachable); err != nil {
		return err
	}
	for _, pod := range e.PodsOf(machine) {
		if pod.Terminating() && len(pod.Unstructured().GetFinalizers()) == 0 {
			if err := e.Remove(pod); err != nil {
				return err
			}
			continue
		}
		if err := e.Modify(pod, g.power.markReachable); err != nil {
			return err
		}
	}
	return nil
}

// unreachableNodes returns the sorted names of the Nodes that powerOff changed.
func unreachableNodes(e store.Exclusive) []string {
	var names []string
	for _, o := range e.List(store.Nodes()) {
		if machines.Unreachable(o.Unstructured()) {
			names = append(names, o.Key.Name)
		}
	}
	return names
}

// Faults returns the injected faults.
func (g *Group) Faults() faults.Faults { return g.power.Current() }

// Dead reports whether a machine lost power.
func (g *Group) Dead(machine string) bool { return g.power.Dead(machine) }

// InjectFaults applies the faults to a request: see faults.Injector.
func (g *Group) InjectFaults(ctx context.Context) error { return g.power.Inject(ctx) }

// AwaitResponsive waits while the cluster is unresponsive.
func (g *Group) AwaitResponsive(ctx context.Context) error { return g.power.AwaitResponsive(ctx) }

// SetFaults replaces the injected faults, and powers machines off and on accordingly: also those that an earlier process
// powered off, according to the journal.
func (g *Group) SetFaults(next faults.Faults) error {
	if err := next.Validate(); err != nil {
		return err
	}
	next.DeadMachines = slices.Sorted(slices.Values(next.DeadMachines))
	return g.Exclusively(func(e store.Exclusive) error { return g.setFaults(e, next) })
}

func (g *Group) setFaults(e store.Exclusive, next faults.Faults) error {
	before := g.power.Current()
	if !g.faultsSet {
		before.DeadMachines, g.faultsSet = unreachableNodes(e), true
	}
	if before.Equal(next) && g.power.Current().Equal(next) {
		return nil
	}
	g.power.Set(next)
	defer e.Wake()
	for _, machine := range next.DeadMachines {
		if !slices.Contains(before.DeadMachines, machine) {
			if err := g.powerOff(e, machine); err != nil {
				return err
			}
		}
	}
	for _, machine := range before.DeadMachines {
		if !slices.Contains(next.DeadMachines, machine) {
			if err := g.powerOn(e, machine); err != nil {
				return err
			}
		}
	}
	return nil
}
