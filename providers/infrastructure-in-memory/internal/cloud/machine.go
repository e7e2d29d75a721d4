package cloud

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/machines"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// EnsureMachine creates a machine unless one of this name exists, and returns it.
func (g *Group) EnsureMachine(spec machines.Spec) (machines.Machine, error) {
	if _, err := g.Create(machines.Resource(), spec.Object(), store.WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return machines.Machine{}, err
	}
	return g.Machine(spec.Name)
}

// Machine returns a machine, or NotFound.
func (g *Group) Machine(name string) (machines.Machine, error) {
	o, err := g.Get(store.Key{Resource: machines.Resource(), Name: name})
	if err != nil {
		return machines.Machine{}, err
	}
	return g.machine(o), nil
}

// Machines returns all machines, sorted by name.
func (g *Group) Machines() []machines.Machine {
	stored, _ := g.List(machines.Resource(), "", store.Selector{})
	all := make([]machines.Machine, 0, len(stored))
	for _, o := range stored {
		all = append(all, g.machine(o))
	}
	return all
}

// DeleteMachine deletes a machine, ignoring not found. The caller deletes what ran on it.
func (g *Group) DeleteMachine(name string) error {
	_, _, err := g.Delete(store.Key{Resource: machines.Resource(), Name: name}, store.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// HasMachine reports whether a machine exists, in any state.
func (g *Group) HasMachine(name string, uid types.UID) bool {
	o, err := g.Get(store.Key{Resource: machines.Resource(), Name: name})
	return err == nil && o.UID == uid
}

// Alive reports whether a machine exists and has power.
func (g *Group) Alive(name string, uid types.UID) bool {
	return g.HasMachine(name, uid) && !g.Dead(name)
}

func (g *Group) machine(o *store.Object) machines.Machine {
	return machines.Stored(o, g.Dead(o.Key.Name), g.Now())
}
