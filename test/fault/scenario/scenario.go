package scenario

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/test/fault/history"
)

// ClusterName is the name of the Cluster of every run: runs differ in their namespace.
const ClusterName = "c"

// Size is how many Machines a Cluster has.
type Size struct{ ControlPlanes, Workers int }

// Limits hold in every state from the start of the change to its end. Machines that are being deleted do not count.
type Limits struct {
	// MostControlPlanes and MostWorkers bound how many Machines there are.
	MostControlPlanes, MostWorkers int
	// LeastControlPlanes and LeastWorkers bound how many Machines serve.
	LeastControlPlanes, LeastWorkers int
	// NewControlPlanes and NewWorkers bound how many Machines are made, whether they stay or not.
	NewControlPlanes, NewWorkers int
}

// Target is where a run takes place.
type Target struct {
	// Client is an administrator's, and talks to the API server itself.
	Client client.Client
	// Namespace is the run's own.
	Namespace string
	// Start is the state of the namespace before the change.
	Start history.State
}

// Change is something that a user does. It may be repeated until it succeeds.
type Change func(ctx context.Context, t Target) error

// Condition returns nil when it is true in a state, and otherwise what is missing.
type Condition func(history.State) error

// Scenario is one story.
type Scenario struct {
	// Name is how it is asked for.
	Name string
	// Before is the Cluster that there is at the start. Nil: none.
	Before *Size
	// Change is what is done, one after another at once.
	Change []Change
	// Done is when it is complete.
	Done []Condition
	// Limits hold all the time.
	Limits Limits
	// Deletes says that the Cluster is deleted, and all that belongs to it.
	Deletes bool
}

// All returns the scenarios.
func All() []Scenario {
	return slices.Concat(creations(), scalings(), rollouts(), remediations(), deletions())
}

// Fleet returns the scenario of every Cluster of a fleet: it gets a worker.
func Fleet() Scenario {
	return scaling("fleet", Size{1, 1}, Size{1, 2})
}

// Named returns the scenario of a name.
func Named(name string) (Scenario, bool) {
	for _, s := range All() {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}

func creations() []Scenario {
	create := func(name string, s Size) Scenario {
		return Scenario{
			Name: name, Change: []Change{Create(s)}, Done: []Condition{Ready(s)},
			Limits: Limits{
				MostControlPlanes: s.ControlPlanes, MostWorkers: s.Workers,
				NewControlPlanes: s.ControlPlanes, NewWorkers: s.Workers,
			},
		}
	}
	return []Scenario{create("create-1x1", Size{1, 1}), create("create-3x2", Size{3, 2})}
}

func scalings() []Scenario {
	return []Scenario{
		scaling("control-plane-up", Size{1, 1}, Size{3, 1}),
		scaling("control-plane-down", Size{3, 1}, Size{1, 1}),
		scaling("workers-up", Size{1, 3}, Size{1, 6}),
		scaling("workers-down", Size{1, 5}, Size{1, 2}),
	}
}

func scaling(name string, from, to Size) Scenario {
	return Scenario{
		Name: name, Before: &from, Change: []Change{Resize(to)}, Done: []Condition{Ready(to)},
		Limits: Limits{
			MostControlPlanes: max(from.ControlPlanes, to.ControlPlanes), MostWorkers: max(from.Workers, to.Workers),
			LeastControlPlanes: min(from.ControlPlanes, to.ControlPlanes), LeastWorkers: min(from.Workers, to.Workers),
			NewControlPlanes: max(0, to.ControlPlanes-from.ControlPlanes), NewWorkers: max(0, to.Workers-from.Workers),
		},
	}
}

func rollouts() []Scenario {
	roll := func(name string, s Size, change Change, controlPlanes, workers int, done ...Condition) Scenario {
		return Scenario{
			Name: name, Before: &s, Change: []Change{change}, Done: append(done, Ready(s)),
			Limits: Limits{
				MostControlPlanes: s.ControlPlanes + min(controlPlanes, 1), MostWorkers: s.Workers + min(workers, 1),
				LeastControlPlanes: s.ControlPlanes, LeastWorkers: s.Workers,
				NewControlPlanes: controlPlanes, NewWorkers: workers,
			},
		}
	}
	return []Scenario{
		roll("upgrade-1x1", Size{1, 1}, Upgrade, 1, 1, Upgraded),
		roll("upgrade-3x2", Size{3, 2}, Upgrade, 3, 2, Upgraded),
		roll("rotate-workers", Size{1, 3}, RotateWorkers, 0, 3, Rotated("MachineDeployment")),
		roll("rotate-control-plane", Size{3, 1}, RotateControlPlane, 3, 0, Rotated("KubeadmControlPlane")),
	}
}

func remediations() []Scenario {
	controlPlane, workers := Size{3, 1}, Size{1, 3}
	return []Scenario{
		{
			Name: "remediate-control-plane", Before: &controlPlane, Change: []Change{Condemn(true)},
			Done: []Condition{Ready(controlPlane), nobodyCondemned},
			Limits: Limits{
				MostControlPlanes: 3, MostWorkers: 1, LeastControlPlanes: 2, LeastWorkers: 1, NewControlPlanes: 1,
			},
		},
		{
			Name: "remediate-worker", Before: &workers, Change: []Change{Condemn(false)},
			Done: []Condition{Ready(workers), nobodyCondemned},
			Limits: Limits{
				MostControlPlanes: 1, MostWorkers: 3, LeastControlPlanes: 1, LeastWorkers: 2, NewWorkers: 1,
			},
		},
	}
}

func deletions() []Scenario {
	remove := func(name string, s Size) Scenario {
		return Scenario{
			Name: name, Before: &s, Change: []Change{Delete}, Done: []Condition{Absent}, Deletes: true,
			Limits: Limits{MostControlPlanes: s.ControlPlanes, MostWorkers: s.Workers},
		}
	}
	return []Scenario{remove("delete-1x1", Size{1, 1}), remove("delete-3x2", Size{3, 2})}
}
