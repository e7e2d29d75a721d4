// Package turn is leader election among the replicas of a component in one process, whose host knows when each of them
// has ended. It costs no requests, and a successor takes over without delay. Replicas in several processes need a Lease.
package turn

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is held by a replica from its turn until it ends.
type lock struct {
	name string
	wait func(ctx context.Context) error
}

var _ resourcelock.Interface = lock{}

// New returns the lock of one replica. wait returns nil when it is the replica's turn, which it remains, or the error of its
// context.
func New(name string, wait func(ctx context.Context) error) resourcelock.Interface {
	return lock{name: name, wait: wait}
}

// Get waits for the replica's turn, then reports that there is no record, so that the replica creates it.
func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		// Candidates log errors; a valid record of another replica ends the attempt without one.
		return &resourcelock.LeaderElectionRecord{HolderIdentity: "another replica"}, []byte(l.name), nil
	}
	return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "turn"}, l.name)
}

// Create implements resourcelock.Interface: a replica only creates the record after Get.
func (lock) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// Update implements resourcelock.Interface: a replica keeps its turn.
func (lock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// RecordEvent implements resourcelock.Interface. There is no object to record events for.
func (lock) RecordEvent(string) {}

// Identity returns the name of the component.
func (l lock) Identity() string { return l.name }

// Describe returns the name of the component.
func (l lock) Describe() string { return l.name }
