package manager

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// candidate runs leader election until the context ends.
func candidate(ctx context.Context, t *testing.T, wait func(context.Context) error) (leads, ended chan struct{}) {
	t.Helper()
	leads, ended = make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: newTurn("component", wait), LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	return leads, ended
}

func TestReplicaLeadsInItsTurn(t *testing.T) {
	t.Parallel()
	asked, earlier := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	leads, ended := candidate(ctx, t, func(ctx context.Context) error {
		close(asked)
		select {
		case <-earlier:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	<-asked
	select {
	case <-leads:
		t.Fatal("the replica leads before the earlier one has ended")
	default:
	}
	close(earlier)
	<-leads
	cancel()
	<-ended
}

func TestWaitingReplicaCanBeStopped(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	leads, ended := candidate(ctx, t, func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	})
	<-asked
	cancel()
	<-ended
	select {
	case <-leads:
		t.Error("the replica led without its turn")
	default:
	}
}
