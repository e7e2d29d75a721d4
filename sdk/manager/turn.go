package manager

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// turn is leader election among the replicas of a component in one process, whose host knows when each of them has ended. A
// replica holds it until it ends. It costs no requests, and a successor takes over without delay. Replicas in several processes
// need a Lease.
type turn struct {
	name string
	wait func(ctx context.Context) error
}

var _ resourcelock.Interface = turn{}

// newTurn returns the lock of one replica. wait returns nil when it is the replica's turn, which it remains, or the error of its
// context.
func newTurn(name string, wait func(ctx context.Context) error) resourcelock.Interface {
	return turn{name: name, wait: wait}
}

// Get waits for the replica's turn, then reports that there is no record, so that the replica creates it.
func (l turn) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		// Candidates log errors; a valid record of another replica ends the attempt without one.
		return &resourcelock.LeaderElectionRecord{HolderIdentity: "another replica"}, []byte(l.name), nil
	}
	return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "turn"}, l.name)
}

// Create implements resourcelock.Interface: a replica only creates the record after Get.
func (turn) Create(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// Update implements resourcelock.Interface: a replica keeps its turn.
func (turn) Update(context.Context, resourcelock.LeaderElectionRecord) error { return nil }

// RecordEvent implements resourcelock.Interface. There is no object to record events for.
func (turn) RecordEvent(string) {}

// Identity returns the name of the component.
func (l turn) Identity() string { return l.name }

// Describe returns the name of the component.
func (l turn) Describe() string { return l.name }
