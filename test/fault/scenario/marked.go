package scenario

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
)

// marked returns the scenario of the cluster autoscaler: it marks the Machine of an empty Node, and lowers the number of replicas
// immediately. No other Machine may be deleted, because their Nodes are in use.
func marked() []Scenario {
	from, to := deployed(1, 3), deployed(1, 2)
	return []Scenario{{
		Name: "marked-worker-down", Before: &from, Change: []Change{MarkForDeletion, Resize(to)}, Done: []Condition{Ready(to), noneMarked},
		Limits: Limits{MaxControlPlanes: 1, MaxWorkers: 3, MinControlPlanes: 1, MinWorkers: 2},
	}}
}

// MarkForDeletion marks the worker that would be deleted last otherwise: of equal Machines, the first by name is deleted first.
func MarkForDeletion(ctx context.Context, t Target) error {
	_, workers := Machines(t.Start)
	if len(workers) == 0 {
		return errors.New("no worker exists")
	}
	last := slices.MaxFunc(workers, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	m := object(clusterAPI, "Machine", t.Namespace, last.GetName())
	m.SetAnnotations(map[string]string{clusterv1.DeleteMachineAnnotation: "yes"})
	return t.Client.Patch(ctx, m, client.Merge)
}

// noneMarked is true when the marked Machine is deleted: together with Ready, no other one.
func noneMarked(now history.State) error {
	for _, m := range now.Of("Machine") {
		if _, is := m.GetAnnotations()[clusterv1.DeleteMachineAnnotation]; is {
			return fmt.Errorf("machine %s is marked for deletion, and still exists", m.GetName())
		}
	}
	return nil
}
