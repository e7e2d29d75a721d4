package cloud

import (
	"hash/fnv"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

var (
	nodes = Resource{Resource: "nodes"}
	pods  = Resource{Resource: "pods"}

	// machines are kept with the other objects of a group, so that they are as durable. The API server
	// does not offer this resource.
	machines = Resource{Group: "simulated.cloud", Resource: "machines"}
)

// silentReason is why a Node is not known to be ready.
const silentReason = "NodeStatusUnknown"

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
	return s.Duration + time.Duration(share*s.Jitter*float64(s.Duration))
}

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

func (g *Group) machine(o *Object) Machine {
	u := o.Unstructured()
	startup, _, _ := unstructured.NestedInt64(u.Object, "spec", "startupNanoseconds")
	controlPlane, _, _ := unstructured.NestedBool(u.Object, "spec", "controlPlane")
	created := u.GetCreationTimestamp().Time
	m := Machine{
		Name:         o.Key.Name,
		UID:          o.UID,
		ControlPlane: controlPlane,
		Created:      created,
		RunningAt:    created.Add(time.Duration(startup)),
		State:        MachineRunning,
	}
	switch {
	case g.Dead(m.Name):
		m.State = MachineDead
	case g.clock.Now().Before(m.RunningAt):
		m.State = MachineStarting
	}
	return m
}

// powerOff shows a machine's death the way a real cluster does once the kubelet has been silent long
// enough. The group's lock is held.
func (g *Group) powerOff(machine string) error {
	if err := g.setCondition(g.lookup(Key{Resource: nodes, Name: machine}), "Unknown", silentReason,
		"Kubelet stopped posting node status."); err != nil {
		return err
	}
	for _, pod := range g.podsOf(machine) {
		if err := g.setCondition(pod, "False", "", ""); err != nil {
			return err
		}
	}
	return nil
}

// silent returns the sorted names of the Nodes that powerOff left. The group's lock is held.
func (g *Group) silent() []string {
	var names []string
	for _, o := range g.objects[nodes] {
		list, _, _ := unstructured.NestedSlice(o.Unstructured().Object, "status", "conditions")
		if slices.ContainsFunc(list, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == "Ready" && condition["reason"] == silentReason
		}) {
			names = append(names, o.Key.Name)
		}
	}
	slices.Sort(names)
	return names
}

// powerOn is the return of a machine: its Pods that were to stop are stopped, the others are ready again.
func (g *Group) powerOn(machine string) error {
	if err := g.setCondition(g.lookup(Key{Resource: nodes, Name: machine}), "True", "KubeletReady",
		"kubelet is posting ready status"); err != nil {
		return err
	}
	for _, pod := range g.podsOf(machine) {
		u := pod.Unstructured()
		if pod.terminating && len(u.GetFinalizers()) == 0 {
			if err := g.remove(pod); err != nil {
				return err
			}
			continue
		}
		if err := g.setCondition(pod, "True", "", ""); err != nil {
			return err
		}
	}
	return nil
}

// setCondition sets an object's Ready condition, if it is there and has one.
func (g *Group) setCondition(o *Object, status, reason, message string) error {
	if o == nil {
		return nil
	}
	u := o.Unstructured()
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	ready := slices.IndexFunc(list, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == "Ready"
	})
	if ready < 0 {
		return nil
	}
	condition := list[ready].(map[string]any)
	if condition["status"] == status {
		return nil
	}
	condition["status"] = status
	condition["lastTransitionTime"] = g.clock.Now().UTC().Format(time.RFC3339)
	for field, value := range map[string]string{"reason": reason, "message": message} {
		delete(condition, field)
		if value != "" {
			condition[field] = value
		}
	}
	if err := unstructured.SetNestedSlice(u.Object, list, "status", "conditions"); err != nil {
		return err
	}
	updated, err := encode(o.Key, u, g.revision+1)
	if err != nil {
		return err
	}
	return g.put(Event{Type: watch.Modified, Object: updated, Previous: o})
}

// podsOf returns the Pods bound to a Node, sorted. The group's lock is held.
func (g *Group) podsOf(node string) []*Object {
	var bound []*Object
	for _, o := range g.objects[pods] {
		if nodeName(o.Unstructured()) == node {
			bound = append(bound, o)
		}
	}
	slices.SortFunc(bound, func(a, b *Object) int { return compareKeys(a.Key, b.Key) })
	return bound
}

// removePodsOf removes the Pods of a Node that is gone, as a cluster's Pod garbage collector does.
func (g *Group) removePodsOf(node string) error {
	for _, pod := range g.podsOf(node) {
		if g.lookup(pod.Key) != pod || len(pod.Unstructured().GetFinalizers()) > 0 {
			continue
		}
		if err := g.remove(pod); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) onDeadMachine(pod *unstructured.Unstructured) bool {
	node := nodeName(pod)
	return node != "" && g.Dead(node)
}

func nodeName(pod *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	return node
}

// stays tells whether a Pod cannot be stopped, because its machine is dead, and may take its time to.
func (g *Group) stays(current *Object, pod *unstructured.Unstructured, o DeleteOptions) bool {
	return current.Key.Resource == pods && gracePeriod(pod, o) > 0 && g.onDeadMachine(pod)
}
