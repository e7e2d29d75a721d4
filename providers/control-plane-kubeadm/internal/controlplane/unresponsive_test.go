package controlplane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/kcptest"
)

// reconciled takes the steps of a steady control plane that use the workload cluster.
func (b *bench) reconciled(ctx context.Context, w connection.Workload) (time.Duration, error) {
	b.s, b.Workloads = &scope{}, connected{w}
	result, err := b.take(ctx, "connect", "inspect", "pre-terminate", "orphaned-members")
	return result.After(), err
}

// With more unresponsive clusters than workers, all other clusters are still reconciled.
func TestUnresponsiveClustersDoNotOccupyAllWorkers(t *testing.T) {
	const workers, hanging, serving, duration = 10, 15, 5, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		queue := workqueue.NewTypedDelayingQueue[int]()
		clusters := make([]*bench, hanging+serving)
		workloads := make([]connection.Workload, hanging+serving)
		for i := range clusters {
			b, f := three(t)
			b.Clock = clock.RealClock{} // that of the bubble
			clusters[i], workloads[i] = b, f
			if i < hanging {
				workloads[i] = &kcptest.Unresponsive{Workload: f}
			}
		}
		var (
			mu     sync.Mutex
			asked  = map[int]time.Time{}
			served = map[int]int{}
			worst  time.Duration
			busy   time.Duration
			all    sync.WaitGroup
		)
		for range workers {
			all.Go(func() {
				for {
					i, end := queue.Get()
					if end {
						return
					}
					begun := time.Now()
					after, _ := clusters[i].reconciled(ctx, workloads[i])
					queue.Done(i)
					mu.Lock()
					if i < hanging {
						busy += time.Since(begun)
						queue.AddAfter(i, max(after, 50*time.Millisecond))
					} else {
						served[i]++
						worst = max(worst, time.Since(asked[i]))
					}
					mu.Unlock()
				}
			})
		}
		for i := range hanging {
			queue.Add(i)
		}
		for range int(duration / time.Second) {
			time.Sleep(time.Second) // virtual
			for i := hanging; i < len(clusters); i++ {
				mu.Lock()
				asked[i] = time.Now()
				mu.Unlock()
				queue.Add(i)
			}
		}
		cancel()
		queue.ShutDown()
		all.Wait()
		for i := hanging; i < len(clusters); i++ {
			if served[i] < 500 {
				t.Errorf("cluster %d was reconciled %d times in %s", i, served[i], duration)
			}
		}
		if worst > 2*connection.ReadLimit {
			t.Errorf("a responsive cluster waited %s for a worker", worst)
		}
		if share := busy.Seconds() / (workers * duration.Seconds()); share > 0.2 {
			t.Errorf("unresponsive clusters occupy %.0f %% of the workers", 100*share)
		}
	})
}

// The limits apply to all calls of one reconcile together.
func TestAReconcileEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := three(t)
		b.Clock = clock.RealClock{}
		f.Members["x"] = false // an orphaned member, to be removed
		unresponsive, begun := &kcptest.Unresponsive{Workload: f, OnlyMembers: []string{"b"}}, time.Now()
		_, err := b.reconciled(t.Context(), unresponsive)
		for _, node := range []string{"a", "b", "c", "d"} {
			unresponsive.OnlyMembers = []string{node}
			b.s.connection.Workload.Etcd(t.Context(), []string{node})
		}
		_, exists := b.s.connection.Workload.KubeadmConfigExists(t.Context())
		removed := b.s.connection.Workload.RemoveEtcdMember(t.Context(), "b", []string{"a"})
		if err == nil || !errors.Is(exists, connection.ErrBackoff) || !errors.Is(removed, connection.ErrBackoff) {
			t.Errorf("errors %v, %v and %v", err, exists, removed)
		}
		if took := time.Since(begun); took > 2*3*connection.ReadLimit {
			t.Errorf("it took %s, want %s at most", took, 2*3*connection.ReadLimit)
		}
	})
}

// Slow reads must not use up the time for removing a member.
func TestSlowMembersAreRemoved(t *testing.T) {
	for reason, lags := range map[string]string{"they agree": "", "they disagree, and are queried twice": "a"} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, f := three(t)
				b.Clock = clock.RealClock{}
				b.Deleted(t, "b")
				b.Drained(t, "b")
				reload(t, b, f)
				if _, err := b.reconciled(t.Context(), kcptest.Slow{Workload: f, Delay: connection.ReadLimit - 100*time.Millisecond, Lagging: lags}); err != nil {
					t.Fatal(err)
				}
				if got := b.Held(t); !slices.Equal(got, []string{"a", "c"}) {
					t.Errorf("held are %q, want no longer b", got)
				}
			})
		})
	}
}
