package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/clusterctl/explain"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// remediations are the scenarios in which machines lose power, and health checks find them.
func remediations() []Scenario {
	cut := deployed(1, 3)
	lose := func(name string, s Size, controlPlane bool, n int, done Condition, limits Limits) Scenario {
		return Scenario{
			Name: name, Before: &s, Change: []Change{CheckHealth, LosePower(controlPlane, n)}, Done: []Condition{done}, Limits: limits,
		}
	}
	deadZone := lose("dead-zone", deployed(1, 5), false, 3, restricted(deployed(1, 5), 3), Limits{
		MaxControlPlanes: 1, MaxWorkers: 5, MinControlPlanes: 1, MinWorkers: 5,
	})
	deadZone.Cause = explain.RemediationRestricted
	return []Scenario{
		deadZone,
		lose("remediate-control-plane", deployed(3, 1), true, 1, replaced(deployed(3, 1)), Limits{
			MaxControlPlanes: 3, MaxWorkers: 1, MinControlPlanes: 2, MinWorkers: 1, NewControlPlanes: 1,
		}),
		lose("remediate-two-control-planes", deployed(5, 1), true, 2, replaced(deployed(5, 1)), Limits{
			MaxControlPlanes: 5, MaxWorkers: 1, MinControlPlanes: 3, MinWorkers: 1, NewControlPlanes: 2,
		}),
		lose("remediate-worker", deployed(1, 3), false, 1, replaced(deployed(1, 3)), Limits{
			MaxControlPlanes: 1, MaxWorkers: 3, MinControlPlanes: 1, MinWorkers: 2, NewWorkers: 1,
		}),
		lose("remediate-two-workers", deployed(1, 5), false, 2, replaced(deployed(1, 5)), Limits{
			MaxControlPlanes: 1, MaxWorkers: 5, MinControlPlanes: 1, MinWorkers: 3, NewWorkers: 2,
		}),
		{
			Name: "remediate-unreachable", Before: &cut, Change: []Change{CheckHealth, losePower(false, 1, faults{Unresponsive: true})},
			Done: []Condition{replaced(cut)}, Provider: Reconnect,
			Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 3, MinControlPlanes: 1, MinWorkers: 2, NewWorkers: 1},
		},
	}
}

// CheckHealth makes the health checks of the topology find machines without power at once, and remediate at most 40 % of them.
func CheckHealth(ctx context.Context, t Target) error {
	return checkHealth(nil)(ctx, t)
}

// checkHealth is CheckHealth with other fields in addition.
func checkHealth(fields map[string]any) Change {
	return editCluster(healthChecks(fields))
}

// healthChecks changes the health checks of a topology.
func healthChecks(fields map[string]any) func(topology map[string]any) error {
	check := func() map[string]any {
		out := map[string]any{
			"maxUnhealthy": "40%", "unhealthyConditions": []any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "1s"}},
		}
		maps.Copy(out, runtime.DeepCopyJSON(fields))
		return out
	}
	return func(topology map[string]any) error {
		deployments, _, err := unstructured.NestedSlice(topology, "workers", "machineDeployments")
		if err != nil || len(deployments) != 1 {
			return fmt.Errorf("the Cluster must have one MachineDeployment: %w", err)
		}
		return errors.Join(
			unstructured.SetNestedMap(topology, check(), "controlPlane", "machineHealthCheck"),
			unstructured.SetNestedMap(deployments[0].(map[string]any), check(), "machineHealthCheck"),
			unstructured.SetNestedSlice(topology, deployments, "workers", "machineDeployments"),
		)
	}
}

// faults are the faults of an InMemoryCluster.
type faults struct {
	DeadMachines []string `json:"deadMachines,omitempty"`
	Unresponsive bool     `json:"unresponsive,omitempty"`
}

// LosePower takes the power of the oldest machines of the control plane or of the workers.
func LosePower(controlPlane bool, n int) Change {
	return losePower(controlPlane, n, faults{})
}

// losePower is LosePower with other faults at the same time.
func losePower(controlPlane bool, n int, others faults) Change {
	return func(ctx context.Context, t Target) error {
		machines := byAge(t.Start, controlPlane)
		if len(machines) < n {
			return fmt.Errorf("there are only %d Machines", len(machines))
		}
		all := others
		for _, m := range machines[:n] {
			all.DeadMachines = append(all.DeadMachines, m.GetName())
		}
		return inject(ctx, t, t.Start, all)
	}
}

// inject replaces the faults of the InMemoryCluster.
func inject(ctx context.Context, t Target, now history.State, f faults) error {
	all := now.Of("InMemoryCluster")
	if len(all) != 1 {
		return fmt.Errorf("%d objects of kind InMemoryCluster exist, want 1", len(all))
	}
	value, err := json.Marshal(f)
	if err != nil {
		return err
	}
	infrastructure := object(infrastructureAPI, "InMemoryCluster", t.Namespace, all[0].GetName())
	infrastructure.SetAnnotations(map[string]string{inmemoryv1.FaultsAnnotation: string(value)})
	return t.Client.Patch(ctx, infrastructure, client.Merge)
}

// injected returns the faults of all InMemoryClusters.
func injected(now history.State) faults {
	var all faults
	for _, c := range now.Of("InMemoryCluster") {
		f := injectedInto(c)
		all.DeadMachines = append(all.DeadMachines, f.DeadMachines...)
		all.Unresponsive = all.Unresponsive || f.Unresponsive
	}
	return all
}

// injectedInto returns the faults of an InMemoryCluster.
func injectedInto(c *unstructured.Unstructured) faults {
	f := faults{}
	if json.Unmarshal([]byte(c.GetAnnotations()[inmemoryv1.FaultsAnnotation]), &f) != nil {
		return faults{}
	}
	return f
}

// Powerless returns the names of the machines without power.
func Powerless(now history.State) []string { return injected(now).DeadMachines }

// Unresponsive reports whether the workload cluster does not respond.
func Unresponsive(now history.State) bool { return injected(now).Unresponsive }

// Reconnect makes the workload cluster respond again, once all health checks report that it does not.
func Reconnect(ctx context.Context, t Target, now history.State) error {
	f := injected(now)
	if !f.Unresponsive {
		return nil
	}
	for _, h := range now.Of("MachineHealthCheck") {
		if Reason(h, string(clusterv1.RemediationAllowedCondition)) != clusterv1.WorkloadClusterUnreachableReason {
			return nil
		}
	}
	f.Unresponsive = false
	return inject(ctx, t, now, f)
}

// replaced is true when the machines without power are replaced, and the Cluster is ready.
func replaced(s Size) Condition {
	return func(now history.State) error {
		for _, m := range now.Of("Machine") {
			if slices.Contains(Powerless(now), m.GetName()) {
				return fmt.Errorf("machine %s still exists", m.GetName())
			}
		}
		return Ready(s)(now)
	}
}

// restricted is true when a number of workers is found unhealthy, their health check reports that it remediates none, and their owners
// have noticed the failure.
func restricted(s Size, unhealthy int) Condition {
	return func(now history.State) error {
		for _, kind := range []string{"MachineDeployment", "MachineSet"} {
			for _, o := range now.Of(kind) {
				message := fmt.Sprintf("%d of %d completed", s.Workers-unhealthy, s.Workers)
				if ready := Number(o, "status", "readyReplicas"); ready != s.Workers-unhealthy {
					return fmt.Errorf("%d replicas of %s %s are ready", ready, kind, o.GetName())
				}
				if text := Message(o, string(clusterv1.MachinesReadyCondition)); kind == "MachineSet" && text != message {
					return fmt.Errorf("condition MachinesReady of %s %s is %q, want %q", kind, o.GetName(), text, message)
				}
			}
		}
		return checked(now, s.ControlPlanes+s.Workers, unhealthy)
	}
}

// checkedMachines returns the number of Machines with a health check: topologies have none for MachinePools.
func checkedMachines(now history.State, s Size) int {
	if s.Pool && now[history.Key{Kind: "MachineHealthCheck", Name: poolCheck}] == nil {
		return s.ControlPlanes
	}
	return s.ControlPlanes + s.Workers
}

// checked returns an error if the health checks do not count these Machines, or the Machines' conditions differ from that. Both are
// written some seconds late.
func checked(now history.State, machines, unhealthy int) error {
	found := map[string]int{}
	for _, m := range now.Of("Machine") {
		found[Status(m, string(clusterv1.MachineHealthCheckSucceededCondition))]++
	}
	if found["False"] != unhealthy || found["True"] != machines-unhealthy {
		return fmt.Errorf("%d Machines are found unhealthy and %d healthy, want %d of %d", found["False"], found["True"], unhealthy, machines)
	}
	expected, healthy, blocked := 0, 0, 0
	for _, h := range now.Of("MachineHealthCheck") {
		if err := current(now, h); err != nil {
			return err
		}
		expected += Number(h, "status", "expectedMachines")
		healthy += Number(h, "status", "currentHealthy")
		if Status(h, string(clusterv1.RemediationAllowedCondition)) == "False" {
			blocked++
		}
	}
	if expected != machines || healthy != machines-unhealthy {
		return fmt.Errorf("the health checks count %d of %d healthy Machines, want %d of %d", healthy, expected, machines-unhealthy, machines)
	}
	if (blocked > 0) != (unhealthy > 0) {
		return fmt.Errorf("%d health checks do not allow remediation", blocked)
	}
	return nil
}

// current returns an error if a target in the status of a health check no longer exists: the status is written some seconds late.
func current(now history.State, h *unstructured.Unstructured) error {
	targets, _, err := unstructured.NestedStringSlice(h.Object, "status", "targets")
	if err != nil {
		return err
	}
	for _, name := range targets {
		if now[history.Key{Kind: "Machine", Name: name}] == nil {
			return fmt.Errorf("MachineHealthCheck %s has target %s, which no longer exists", h.GetName(), name)
		}
	}
	return nil
}
