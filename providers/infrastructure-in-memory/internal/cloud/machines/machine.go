// Package machines is what machines are in the simulated cloud: how they are stored, how long they take to start, and what their Nodes and
// Pods look like with and without power. It has no state.
package machines

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
)

// Resource is where machines are stored, like the other objects of a workload cluster, and as durable. The API server does not serve it.
func Resource() store.Resource { return store.Resource{Group: store.Simulation, Resource: "machines"} }

// State is the state of a machine.
type State string

const (
	// Starting is a machine that is starting.
	Starting State = "Starting"
	// Running is a running machine.
	Running State = "Running"
	// Dead is a machine that lost power, see faults.Faults.DeadMachines.
	Dead State = "Dead"
)

// Spec describes a machine to create.
type Spec struct {
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
	State State
	// UserData and Restored are as in the Spec.
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

// Object returns the stored form of a machine.
func (s Spec) Object() *unstructured.Unstructured {
	content := map[string]any{"controlPlane": s.ControlPlane, "startupNanoseconds": int64(s.Startup)}
	if s.UserData != "" {
		content["userData"] = s.UserData
	}
	if s.Restored {
		content["restored"] = true
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "simulated.cloud/v1",
		"kind":       "Machine",
		"metadata":   map[string]any{"name": s.Name, "uid": string(s.UID)},
		"spec":       content,
	}}
	if !s.Created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(s.Created))
	}
	return u
}

// Stored returns a stored machine as it is now.
func Stored(o *store.Object, dead bool, now time.Time) Machine {
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
		State:        Running,
		UserData:     userData,
		Restored:     restored,
	}
	switch {
	case dead:
		m.State = Dead
	case now.Before(m.RunningAt):
		m.State = Starting
	}
	return m
}
