package scenario

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// pooled returns the size of a Cluster with a MachinePool.
func pooled(controlPlanes, workers int) Size {
	return Size{ControlPlanes: controlPlanes, Workers: workers, Pool: true}
}

// pools returns the scenarios of MachinePools. Their machines are replaced one at a time, like those of MachineDeployments.
func pools() []Scenario {
	three := pooled(1, 3)
	versioned := rollout("pool-versioned", pooled(1, 2), Upgrade, 1, 2, Upgraded)
	versioned.Prepare = UseVersionedPools
	return []Scenario{
		versioned,
		creation("pool-create", pooled(1, 2)),
		scaling("pool-up", pooled(1, 2), pooled(1, 4)),
		scaling("pool-down", pooled(1, 4), pooled(1, 2)),
		rollout("pool-upgrade", pooled(1, 2), Upgrade, 1, 2, Upgraded),
		rollout("pool-rotate", pooled(1, 2), RotatePool, 0, 2, poolRotated),
		{
			Name: "pool-remediate", Before: &three,
			Change: []Change{CheckPool, LosePower(false, 1)},
			Done:   []Condition{replaced(three), poolHealthy(3)},
			Limits: Limits{
				MaxControlPlanes: 1, MaxWorkers: 3, MinControlPlanes: 1, MinWorkers: 2, NewWorkers: 1,
			},
		},
		deletion("pool-delete", pooled(1, 2)),
	}
}

// UseVersionedPools changes the class: bootstrap data and infrastructure of its pools depend on their version. An upgrade changes three
// objects of a pool, and must replace each machine once.
func UseVersionedPools(ctx context.Context, t Target) error {
	definition := func(apiVersion, kind, path, template string) any {
		return map[string]any{
			"selector": map[string]any{
				"apiVersion": apiVersion, "kind": kind, "matchResources": map[string]any{"machinePoolClass": map[string]any{"names": []any{"*"}}},
			},
			"jsonPatches": []any{map[string]any{"op": "add", "path": path, "valueFrom": map[string]any{"template": template}}},
		}
	}
	return editClass(ctx, t, func(class map[string]any) error {
		patches, _, err := unstructured.NestedSlice(class, "spec", "patches")
		if err != nil {
			return err
		}
		return unstructured.SetNestedSlice(class, append(patches, map[string]any{"name": "version", "definitions": []any{
			definition("bootstrap.cluster.x-k8s.io/v1beta1", "KubeadmConfigTemplate", "/spec/template/spec/preKubeadmCommands",
				"[echo {{ .builtin.machinePool.version }}]"),
			definition(infrastructureAPI, "InMemoryMachinePoolTemplate", "/spec/template/spec/template",
				`{behaviour: {vm: {provisioning: {startupDuration: {{ if eq .builtin.machinePool.version "`+
					firstVersion+`" }}1ms{{ else }}2ms{{ end }}}}}}`),
		}}), "spec", "patches")
	})
}

// poolCheck is the name of the health check of the pool.
const poolCheck = "pool"

// CheckPool creates a MachineHealthCheck for the Machines of the pool: topologies have none for pools.
func CheckPool(ctx context.Context, t Target) error {
	check := object(clusterAPI, "MachineHealthCheck", t.Namespace, poolCheck)
	check.Object["spec"] = map[string]any{
		"clusterName": ClusterName, "maxUnhealthy": "40%",
		"selector": map[string]any{
			"matchLabels": map[string]any{clusterv1.ClusterTopologyMachinePoolNameLabel: pooled(0, 0).topologyName()},
		},
		"unhealthyConditions": []any{map[string]any{"type": "Ready", "status": "Unknown", "timeout": "1s"}},
	}
	return ignoreExists(t.Client.Create(ctx, check))
}

// poolHealthy is true when the health check of the pool has found that all of its Machines are healthy.
func poolHealthy(n int) Condition {
	return func(now history.State) error {
		check := now[history.Key{Kind: "MachineHealthCheck", Name: poolCheck}]
		if check == nil {
			return errors.New("the MachineHealthCheck does not exist")
		}
		for _, field := range []string{"expectedMachines", "currentHealthy"} {
			if have := Number(check, "status", field); have != n {
				return fmt.Errorf("status.%s of the MachineHealthCheck is %d, want %d", field, have, n)
			}
		}
		_, workers := Machines(now)
		for _, m := range workers {
			if Status(m, string(clusterv1.MachineHealthCheckSucceededCondition)) != "True" {
				return fmt.Errorf("machine %s is not checked yet", m.GetName())
			}
		}
		return nil
	}
}

// SetPool gives the topology a MachinePool with replicas, in addition to other workers.
func SetPool(replicas int) Change {
	return editCluster(func(topology map[string]any) error {
		s := pooled(0, replicas)
		return unstructured.SetNestedSlice(topology, []any{
			map[string]any{"class": "default-worker", "name": s.topologyName(), "replicas": int64(replicas)},
		}, "workers", s.workers())
	})
}

// PoolReady is true when the only MachinePool has this many ready replicas.
func PoolReady(replicas int) Condition {
	return func(now history.State) error {
		all := now.Of("MachinePool")
		if len(all) != 1 {
			return fmt.Errorf("%d MachinePools exist, want 1", len(all))
		}
		if ready, have := Number(all[0], "status", "readyReplicas"), Number(all[0], "status", "replicas"); ready != replicas || have != replicas {
			return fmt.Errorf("%d of %d replicas of MachinePool %s are ready, want %d", ready, have, all[0].GetName(), replicas)
		}
		return observed(all[0])
	}
}

// RotatePool changes the class to another infrastructure template for MachinePools.
func RotatePool(ctx context.Context, t Target) error {
	next := object(infrastructureAPI, "InMemoryMachinePoolTemplate", t.Namespace, "in-memory-default-worker"+rotatedSuffix)
	next.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"template": map[string]any{
		"behaviour": map[string]any{"vm": map[string]any{"provisioning": map[string]any{"startupDuration": "1ms"}}},
	}}}}
	if err := ignoreExists(t.Client.Create(ctx, next)); err != nil {
		return err
	}
	return editClass(ctx, t, func(class map[string]any) error {
		classes, _, err := unstructured.NestedSlice(class, "spec", "workers", "machinePools")
		if err != nil || len(classes) != 1 {
			return fmt.Errorf("the class must have one class of MachinePools: %w", err)
		}
		return errors.Join(
			unstructured.SetNestedField(classes[0].(map[string]any), next.GetName(), "template", "infrastructure", "ref", "name"),
			unstructured.SetNestedSlice(class, classes, "spec", "workers", "machinePools"),
		)
	})
}

// poolRotated is true when all workers have the behaviour of the second template.
func poolRotated(now history.State) error {
	for _, m := range now.Of("InMemoryMachine") {
		if _, controlPlane := m.GetLabels()[clusterv1.MachineControlPlaneLabel]; controlPlane {
			continue
		}
		if _, rotated, _ := unstructured.NestedMap(m.Object, "spec", "behaviour"); !rotated {
			return fmt.Errorf("machine %s is not replaced yet", m.GetName())
		}
	}
	return nil
}
