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

// notTooMany checks the number of Machines, without those that are being deleted.
func notTooMany(r Run) []Violation {
	limits := r.Scenario.Limits
	return r.play(func(e history.Event, now history.State) *Violation {
		if e.Object.GetKind() != "Machine" {
			return nil
		}
		controlPlane, workers := scenario.Machines(now)
		if n := notDeleted(controlPlane); n > limits.MaxControlPlanes {
			return &Violation{Detail: fmt.Sprintf("%d control plane Machines, at most %d are allowed", n, limits.MaxControlPlanes)}
		}
		if n := notDeleted(workers); n > limits.MaxWorkers {
			return &Violation{Detail: fmt.Sprintf("%d workers, at most %d are allowed", n, limits.MaxWorkers)}
		}
		return nil
	})
}

func notDeleted(machines []*unstructured.Unstructured) int {
	n := 0
	for _, m := range machines {
		if m.GetDeletionTimestamp() == nil {
			n++
		}
	}
	return n
}

// enoughAvailable checks the number of available Machines: their Node was healthy once, and they are not being deleted. Their
// current NodeHealthy condition does not count, because managers cannot update it while they are down or partitioned.
func enoughAvailable(r Run) []Violation {
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
		available := func(machines []*unstructured.Unstructured) int {
			return notDeleted(slices.DeleteFunc(machines, func(m *unstructured.Unstructured) bool { return !served[m.GetUID()] }))
		}
		controlPlane, workers := scenario.Machines(now)
		if n := available(controlPlane); n < limits.MinControlPlanes {
			return &Violation{Detail: fmt.Sprintf("%d control plane Machines are available, at least %d are required", n, limits.MinControlPlanes)}
		}
		if n := available(workers); n < limits.MinWorkers {
			return &Violation{Detail: fmt.Sprintf("%d workers are available, at least %d are required", n, limits.MinWorkers)}
		}
		return nil
	})
}

// nothingCreatedTwice checks how many Machines, and objects for them, were created during the run.
func nothingCreatedTwice(r Run) []Violation {
	limits := r.Scenario.Limits
	most := limits.NewControlPlanes + limits.NewWorkers
	created := map[string]map[types.UID]bool{}
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
		if created[kind] == nil {
			created[kind] = map[types.UID]bool{}
		}
		created[kind][e.Object.GetUID()] = true
		limit, limited := map[string]int{
			"control plane Machine": limits.NewControlPlanes, "Machine": limits.NewWorkers, "InMemoryMachine": most, "KubeadmConfig": most,
		}[kind]
		if n := len(created[kind]); limited && n > limit {
			return &Violation{
				Detail: fmt.Sprintf("%d objects of kind %s were created, at most %d are allowed; the last is %s", n, kind, limit, e.Object.GetName()),
			}
		}
		return nil
	})
}
