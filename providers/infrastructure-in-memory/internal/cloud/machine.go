package cloud

import (
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var (
	nodes = Resource{Resource: "nodes"}
	pods  = Resource{Resource: "pods"}

	// machines are stored like the other objects of a group, and as durable. The API server does not serve this resource.
	machines = Resource{Group: simulation, Resource: "machines"}
)

// Startup is the duration of one startup stage of a machine: Duration, plus a random fraction of it of at most Jitter.
type Startup struct {
	Duration time.Duration
	// Jitter is a factor of Duration, 0 for none.
	Jitter float64
}

// Delay returns the duration of the stage. The random part is derived from the seed, for example a machine's UID and the
// name of the stage, so it is stable across restarts.
func (s Startup) Delay(seed ...string) time.Duration {
	hash := fnv.New64a()
	for _, part := range seed {
		_, _ = hash.Write([]byte(part)) // never fails
		_, _ = hash.Write([]byte{0})
	}
	share := float64(mix(hash.Sum64())>>11) / (1 << 53)
	// The sum would overflow.
	delay := (1 + share*s.Jitter) * float64(s.Duration)
	return time.Duration(min(max(delay, 0), float64(longestDelay)))
}

// longestDelay is practically infinite, but does not overflow times.
const longestDelay = 100 * 365 * 24 * time.Hour

// mix spreads a hash over all bits: hashes of similar seeds are similar.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// MachineState is the state of a machine.
type MachineState string

const (
	// MachineStarting is a machine that is starting.
	MachineStarting MachineState = "Starting"
	// MachineRunning is a running machine.
	MachineRunning MachineState = "Running"
	// MachineDead is a machine that lost power, see Faults.DeadMachines.
	MachineDead MachineState = "Dead"
)

// MachineSpec describes a machine to create.
type MachineSpec struct {
	// Name is the name of the machine and its Node.
	Name string
	// UID is the UID of the machine's owner.
	UID types.UID
	// ControlPlane is whether the machine runs a control plane.
	ControlPlane bool
	// Startup is how long the machine takes to start.
	Startup time.Duration
	// Created is the creation time. Default: now. It is set for a machine that is recreated after a restart.
	Created time.Time
	// UserData is the caller's data for the machine's first start. It is stored with the machine, so it should be short.
	UserData string
	// Restored is whether the machine was running before a restart of a process without journals: it is recreated with
	// what ran on it, and this is not its first start.
	Restored bool
}

// Machine is a simulated machine.
type Machine struct {
	// Name is the name of the machine and its Node.
	Name string
	// UID is the UID of the machine's owner.
	UID types.UID
	// ControlPlane is whether the machine runs a control plane.
	ControlPlane bool
	// Created is the creation time, RunningAt the end of the startup.
	Created, RunningAt time.Time
	// State is the state at the time it was read.
	State MachineState
	// UserData and Restored are as in the MachineSpec.
	UserData string
	Restored bool
}

// ProviderID is the machine's provider ID on Nodes and Machines.
func (m Machine) ProviderID() string { return "in-memory://" + m.Name }

// Capacity returns the capacity of the Node of every machine.
func Capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
}

// EnsureMachine creates a machine unless one of this name exists, and returns it.
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

// DeleteMachine deletes a machine, ignoring not found. The caller deletes what ran on it.
func (g *Group) DeleteMachine(name string) error {
	_, _, err := g.Delete(Key{Resource: machines, Name: name}, DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// HasMachine reports whether a machine exists, in any state.
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
