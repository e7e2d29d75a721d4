package cloud

import (
	"hash/fnv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var (
	nodes = Resource{Resource: "nodes"}
	pods  = Resource{Resource: "pods"}

	// machines are kept with the other objects of a group, so that they are as durable. The API server
	// does not offer this resource.
	machines = Resource{Group: simulation, Resource: "machines"}
)

// Startup is how long one stage of a machine takes: Duration, plus a random share of it of at most Jitter.
type Startup struct {
	Duration time.Duration
	// Jitter is a factor of Duration, 0 for none.
	Jitter float64
}

// Delay returns the duration of the stage. The random share is derived from the seed, for example a
// machine's UID and the name of the stage: it is rolled once and stays the same after a restart.
func (s Startup) Delay(seed ...string) time.Duration {
	hash := fnv.New64a()
	for _, part := range seed {
		_, _ = hash.Write([]byte(part)) // A hash does not fail.
		_, _ = hash.Write([]byte{0})
	}
	share := float64(mix(hash.Sum64())>>11) / (1 << 53)
	// Past the longest duration there is, the sum would become negative.
	delay := (1 + share*s.Jitter) * float64(s.Duration)
	return time.Duration(min(max(delay, 0), float64(longestDelay)))
}

// longestDelay is as good as never, and far from where times overflow.
const longestDelay = 100 * 365 * 24 * time.Hour

// mix spreads a hash over all bits: those of seeds that differ in a letter are close together otherwise.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// MachineState is where a machine is in its life.
type MachineState string

const (
	// MachineStarting is a machine whose startup has not elapsed.
	MachineStarting MachineState = "Starting"
	// MachineRunning is a machine that works.
	MachineRunning MachineState = "Running"
	// MachineDead is a machine that lost its power, see Faults.DeadMachines.
	MachineDead MachineState = "Dead"
)

// MachineSpec asks for a machine.
type MachineSpec struct {
	// Name is the name of the machine and of the Node it becomes.
	Name string
	// UID is the UID of what the machine is made for.
	UID types.UID
	// ControlPlane tells that the machine runs a control plane.
	ControlPlane bool
	// Startup is how long the machine takes to start.
	Startup time.Duration
	// Created is when the machine was asked for first. Default: now. A machine that is made again after
	// a restart keeps its age by it.
	Created time.Time
	// UserData is what the machine knows when it starts for the first time, in a form of the caller's. It stays with
	// the machine, so it should be short.
	UserData string
	// Restored tells that the machine came up before, in a process that kept nothing: it is made again with what ran
	// on it, and does not start for the first time.
	Restored bool
}

// Machine is a simulated machine.
type Machine struct {
	// Name is the name of the machine and of the Node it becomes.
	Name string
	// UID is the UID of what the machine was made for.
	UID types.UID
	// ControlPlane tells that the machine runs a control plane.
	ControlPlane bool
	// Created is when the machine was asked for, RunningAt when its startup has elapsed.
	Created, RunningAt time.Time
	// State is where the machine is in its life at the time it was read.
	State MachineState
	// UserData and Restored are as in the MachineSpec.
	UserData string
	Restored bool
}

// ProviderID is the machine's identity as Nodes and Machines state it.
func (m Machine) ProviderID() string { return "in-memory://" + m.Name }

// EnsureMachine makes a machine unless one of this name exists, and returns it.
func (g *Group) EnsureMachine(spec MachineSpec) (Machine, error) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "simulated.cloud/v1",
		"kind":       "Machine",
		"metadata":   map[string]any{"name": spec.Name, "uid": string(spec.UID)},
		"spec":       map[string]any{"controlPlane": spec.ControlPlane, "startupNanoseconds": int64(spec.Startup)},
	}}
	content := u.Object["spec"].(map[string]any)
	if spec.UserData != "" {
		content["userData"] = spec.UserData
	}
	if spec.Restored {
		content["restored"] = true
	}
	if !spec.Created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(spec.Created))
	}
	if _, err := g.Create(machines, u, WriteOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return Machine{}, err
	}
	return g.Machine(spec.Name)
}

// Machine returns a machine, or NotFound.
func (g *Group) Machine(name string) (Machine, error) {
	o, err := g.Get(Key{Resource: machines, Name: name})
	if err != nil {
		return Machine{}, err
	}
	return g.machine(o), nil
}

// Machines returns all machines, sorted by name.
func (g *Group) Machines() []Machine {
	stored, _ := g.List(machines, "", Selector{})
	all := make([]Machine, 0, len(stored))
	for _, o := range stored {
		all = append(all, g.machine(o))
	}
	return all
}

// DeleteMachine ends a machine. What ran on it is for the caller to delete. Deleting a machine that does
// not exist is no error.
func (g *Group) DeleteMachine(name string) error {
	_, _, err := g.Delete(Key{Resource: machines, Name: name}, DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// HasMachine reports whether a machine exists, in whatever state.
func (g *Group) HasMachine(name string, uid types.UID) bool {
	o, err := g.Get(Key{Resource: machines, Name: name})
	return err == nil && o.UID == uid
}

// Alive reports whether a machine exists and has power.
func (g *Group) Alive(name string, uid types.UID) bool {
	return g.HasMachine(name, uid) && !g.Dead(name)
}

func (g *Group) machine(o *Object) Machine {
	u := o.Unstructured()
	startup, _, _ := unstructured.NestedInt64(u.Object, "spec", "startupNanoseconds")
	controlPlane, _, _ := unstructured.NestedBool(u.Object, "spec", "controlPlane")
	userData, _, _ := unstructured.NestedString(u.Object, "spec", "userData")
	restored, _, _ := unstructured.NestedBool(u.Object, "spec", "restored")
	created := u.GetCreationTimestamp().Time
	m := Machine{
		Name:         o.Key.Name,
		UID:          o.UID,
		ControlPlane: controlPlane,
		Created:      created,
		RunningAt:    created.Add(time.Duration(startup)),
		State:        MachineRunning,
		UserData:     userData,
		Restored:     restored,
	}
	switch {
	case g.Dead(m.Name):
		m.State = MachineDead
	case g.clock.Now().Before(m.RunningAt):
		m.State = MachineStarting
	}
	return m
}
