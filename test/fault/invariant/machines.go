package invariant

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/test/fault/history"
	"sigs.k8s.io/cluster-api/test/fault/scenario"
)

// neverMore counts the Machines that nobody deletes.
func neverMore(r Run) []Violation {
	limits := r.Scenario.Limits
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Object.GetKind() != "Machine" {
			return nil
		}
		controlPlane, workers := scenario.Machines(now)
		if n := alive(controlPlane); n > limits.MostControlPlanes {
			return &Violation{Detail: fmt.Sprintf("%d control plane Machines, at most %d may be", n, limits.MostControlPlanes)}
		}
		if n := alive(workers); n > limits.MostWorkers {
			return &Violation{Detail: fmt.Sprintf("%d workers, at most %d may be", n, limits.MostWorkers)}
		}
		return nil
	})
}

func alive(machines []*unstructured.Unstructured) int {
	n := 0
	for _, m := range machines {
		if m.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// neverFewer counts the Machines that serve: their Node was healthy once, and nobody deletes them. What a manager that has
// just been killed says about Nodes does not matter.
func neverFewer(r Run) []Violation {
	limits := r.Scenario.Limits
	served := map[types.UID]bool{}
	for _, e := range r.Before {
		if e.Object.GetKind() == "Machine" && scenario.Status(e.Object, "NodeHealthy") == "True" {
			served[e.Object.GetUID()] = true
		}
	}
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Object.GetKind() != "Machine" {
			return nil
		}
		if scenario.Status(e.Object, "NodeHealthy") == "True" {
			served[e.Object.GetUID()] = true
		}
		serving := func(machines []*unstructured.Unstructured) int {
			return alive(slices.DeleteFunc(machines, func(m *unstructured.Unstructured) bool { return !served[m.GetUID()] }))
		}
		controlPlane, workers := scenario.Machines(now)
		if n := serving(controlPlane); n < limits.LeastControlPlanes {
			return &Violation{Detail: fmt.Sprintf("%d control plane Machines serve, at least %d must", n, limits.LeastControlPlanes)}
		}
		if n := serving(workers); n < limits.LeastWorkers {
			return &Violation{Detail: fmt.Sprintf("%d workers serve, at least %d must", n, limits.LeastWorkers)}
		}
		return nil
	})
}

// nothingTwice counts the Machines that were made, whether they stayed or not, and what was made for them.
func nothingTwice(r Run) []Violation {
	limits := r.Scenario.Limits
	most := limits.NewControlPlanes + limits.NewWorkers
	made := map[string]map[types.UID]bool{}
	return r.play(func(e history.Event, _ history.State) *Violation {
		kind := e.Object.GetKind()
		if e.Type != watch.Added {
			return nil
		}
		if kind == "Machine" {
			if _, is := e.Object.GetLabels()[clusterv1.MachineControlPlaneLabel]; is {
				kind = "control plane Machine"
			}
		}
		if made[kind] == nil {
			made[kind] = map[types.UID]bool{}
		}
		made[kind][e.Object.GetUID()] = true
		limit, limited := map[string]int{
			"control plane Machine": limits.NewControlPlanes, "Machine": limits.NewWorkers, "InMemoryMachine": most, "KubeadmConfig": most,
		}[kind]
		if n := len(made[kind]); limited && n > limit {
			return &Violation{Detail: fmt.Sprintf("%d of kind %s were made, %d are enough; the last is %s", n, kind, limit, e.Object.GetName())}
		}
		return nil
	})
}
