package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// MaxUnhealthyClusters is how many Clusters may have unhealthy Machines in the management cluster of scenarios with Braked.
const MaxUnhealthyClusters = 1

// fleetNames returns the names of the Clusters of a fleet. All but the first, which is the one under test, are created by FailFleet.
func fleetNames() []string { return []string{ClusterName, "second", "third"} }

// fleetSize returns the size of each of them.
func fleetSize() Size { return deployed(1, 2) }

// braked returns the scenario of a fleet in which more Clusters fail than may. The managers have noticed when faults begin; then the
// timeouts of all health checks expire. Nothing is remediated until RepairOthers has repaired the others, then only what is still dead.
func braked() []Scenario {
	s, n := fleetSize(), len(fleetNames())
	return []Scenario{{
		Name: "remediate-fleet", Before: &s, Braked: true, Arrange: FailFleet, Change: []Change{ExpireTimeouts}, Provider: RepairOthers,
		Done: []Condition{ofFleet(replaced(s))}, Discard: DeleteFleet,
		Limits: Limits{
			MaxControlPlanes: n, MaxWorkers: n * s.Workers, MinControlPlanes: n, MinWorkers: n*s.Workers - 1, NewWorkers: 1,
		},
	}}
}

// ofFleet is true when a condition is true of each Cluster of a fleet.
func ofFleet(condition Condition) Condition {
	return func(now history.State) error {
		for _, name := range fleetNames() {
			if err := condition(OfCluster(now, name)); err != nil {
				return fmt.Errorf("Cluster %s: %w", name, err)
			}
		}
		return nil
	}
}

// OfCluster returns the state of one Cluster of several, as if it were the only one.
func OfCluster(now history.State, name string) history.State {
	one := history.State{}
	for key, o := range now {
		switch {
		case key == history.Key{Kind: "Cluster", Name: name}:
			one[history.Key{Kind: key.Kind, Name: ClusterName}] = o
		case o.GetLabels()[clusterv1.ClusterNameLabel] == name:
			one[key] = o
		}
	}
	return one
}

// FailFleet creates the other Clusters, takes the power of a worker of each, and waits until the Machines report that.
func FailFleet(ctx context.Context, t Target) error {
	s := fleetSize()
	for _, name := range fleetNames()[1:] {
		c := cluster(t.Namespace, s)
		c.SetName(name)
		if err := t.Client.Create(ctx, c); err != nil {
			return err
		}
	}
	var ready history.State
	err := t.Until(ctx, ofFleet(Ready(s)), func(now history.State) error { ready = now; return nil })
	if err != nil {
		return err
	}
	for _, name := range fleetNames() {
		one := OfCluster(ready, name)
		if err := inject(ctx, t, one, faults{DeadMachines: []string{byAge(one, false)[0].GetName()}}); err != nil {
			return err
		}
	}
	return t.Until(ctx, ofFleet(func(now history.State) error {
		return ofDead(now, clusterv1.MachineNodeHealthyCondition, "Unknown")
	}))
}

// ofDead returns an error if a condition of a machine without power has another status, or all machines have power.
func ofDead(now history.State, condition clusterv1.ConditionType, want string) error {
	dead := Powerless(now)
	for _, name := range dead {
		m := now[history.Key{Kind: "Machine", Name: name}]
		if m == nil {
			return fmt.Errorf("machine %s does not exist", name)
		}
		if status := Status(m, string(condition)); status != want {
			return fmt.Errorf("condition %s of machine %s is %q, want %q", condition, name, status, want)
		}
	}
	if len(dead) == 0 {
		return errors.New("all machines have power")
	}
	return nil
}

// ExpireTimeouts makes the health checks of all Clusters find the machines without power at once. Only the fleet limits them.
func ExpireTimeouts(ctx context.Context, t Target) error {
	for _, name := range fleetNames() {
		if err := editNamed(name, healthChecks(map[string]any{"maxUnhealthy": "100%"}))(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// RepairOthers gives the machines of the other Clusters their power back, once health checks of all Clusters report why they do not
// remediate. Each call repairs at most one Cluster.
func RepairOthers(ctx context.Context, t Target, now history.State) error {
	begun := slices.ContainsFunc(now.Of("InMemoryCluster"), func(c *unstructured.Unstructured) bool {
		_, failed := c.GetAnnotations()[inmemoryv1.FaultsAnnotation]
		return failed && len(injectedInto(c).DeadMachines) == 0
	})
	if !begun && ofFleet(heldBack)(now) != nil {
		return nil
	}
	for _, name := range fleetNames()[1:] {
		if one := OfCluster(now, name); len(Powerless(one)) > 0 {
			return inject(ctx, t, one, faults{})
		}
	}
	return nil
}

// heldBack is true when the machines without power are found unhealthy, and a health check reports that the fleet is unhealthy.
func heldBack(now history.State) error {
	for _, h := range now.Of("MachineHealthCheck") {
		if Reason(h, string(clusterv1.RemediationAllowedCondition)) == clusterv1beta2.FleetUnhealthyV1Beta1Reason {
			return ofDead(now, clusterv1.MachineHealthCheckSucceededCondition, "False")
		}
	}
	return errors.New("no health check reports that the fleet is unhealthy")
}

// UnhealthyClusters returns the number of Clusters that have machines without power.
func UnhealthyClusters(now history.State) int {
	n := 0
	for _, c := range now.Of("InMemoryCluster") {
		if len(injectedInto(c).DeadMachines) > 0 {
			n++
		}
	}
	return n
}

// DeleteFleet deletes all Clusters of a fleet.
func DeleteFleet(ctx context.Context, t Target) error {
	var errs []error
	for _, name := range fleetNames() {
		errs = append(errs, client.IgnoreNotFound(t.Client.Delete(ctx, object(clusterAPI, "Cluster", t.Namespace, name))))
	}
	return errors.Join(errs...)
}
