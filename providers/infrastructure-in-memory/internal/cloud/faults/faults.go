// Package faults declares the faults of a simulated workload cluster, and injects those that concern requests.
//
// Machines without power are only listed here: what that means for Nodes and Pods is in package machines.
package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrInjected is the error injected by Faults.ErrorRate.
var ErrInjected = errors.New("injected fault")

// Faults are the injected faults of a workload cluster. The zero value is a healthy cluster. They are declarative:
// setting them replaces all faults, so removing a fault repairs it. An example in JSON:
//
//	{"latency": "200ms", "errorRate": 0.1, "unresponsive": false, "deadMachines": ["cp-abcde"]}
type Faults struct {
	// Latency is added to every request before it is processed.
	Latency metav1.Duration `json:"latency,omitzero"`

	// ErrorRate is the fraction of requests, from 0 to 1, that fail with an internal error.
	ErrorRate float64 `json:"errorRate,omitempty"`

	// Unresponsive accepts connections, but does not respond to requests until the fault is removed.
	Unresponsive bool `json:"unresponsive,omitempty"`

	// DeadMachines are the names of machines that lost power: all conditions of their Node become Unknown, their Pods
	// become not ready and cannot be stopped, their etcd member and API server are unreachable. A dead machine without a
	// Node does not get one.
	DeadMachines []string `json:"deadMachines,omitempty"`

	// Snapshot breaks snapshots of etcd: SnapshotInterrupted or SnapshotCorrupt. Empty: they succeed.
	Snapshot string `json:"snapshot,omitempty"`

	// Emulate selects the behavior of API server and etcd: EmulateV17, or current Kubernetes if it is empty.
	Emulate string `json:"emulate,omitempty"`
}

// Faults of snapshots.
const (
	// SnapshotInterrupted ends the stream with an error after half of the database.
	SnapshotInterrupted = "interrupted"
	// SnapshotCorrupt sends a hash that is not that of the database.
	SnapshotCorrupt = "corrupt"
)

// EmulateV17 restricts API servers and etcd members to the features of Cluster API v1.7's in-memory provider.
const EmulateV17 = "v1.7"

// Limits of faults: a request waits on a goroutine, and every dead machine is looked up.
const (
	maxLatency      = time.Hour
	maxDeadMachines = 1000
)

// Parse reads Faults from JSON. Unknown fields and values out of range are errors.
func Parse(text string) (Faults, error) {
	var f Faults
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return Faults{}, fmt.Errorf("parse faults: %w", err)
	}
	if decoder.More() {
		return Faults{}, errors.New("parse faults: more than one JSON object")
	}
	return f, f.Validate()
}

// Validate returns why the faults are invalid, or nil.
func (f Faults) Validate() error {
	if f.Latency.Duration < 0 {
		return fmt.Errorf("faults: latency is %s: it must not be negative", f.Latency.Duration)
	}
	if f.ErrorRate < 0 || f.ErrorRate > 1 {
		return fmt.Errorf("faults: errorRate is %v: it must be from 0 to 1", f.ErrorRate)
	}
	if f.Emulate != "" && f.Emulate != EmulateV17 {
		return fmt.Errorf("faults: emulate is %q: only %q can be emulated", f.Emulate, EmulateV17)
	}
	if f.Snapshot != "" && f.Snapshot != SnapshotInterrupted && f.Snapshot != SnapshotCorrupt {
		return fmt.Errorf("faults: snapshot is %q: it must be %q or %q", f.Snapshot, SnapshotInterrupted, SnapshotCorrupt)
	}
	if f.Latency.Duration > maxLatency {
		return fmt.Errorf("faults: latency is %s: it must be at most %s", f.Latency.Duration, maxLatency)
	}
	if len(f.DeadMachines) > maxDeadMachines {
		return fmt.Errorf("faults: deadMachines has %d entries: at most %d are allowed", len(f.DeadMachines), maxDeadMachines)
	}
	return nil
}

// Equal reports whether the faults are the same.
func (f Faults) Equal(other Faults) bool {
	return f.Latency == other.Latency && f.ErrorRate == other.ErrorRate && f.Unresponsive == other.Unresponsive &&
		f.Emulate == other.Emulate && f.Snapshot == other.Snapshot && slices.Equal(f.DeadMachines, other.DeadMachines)
}
