package controlplane

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"sigs.k8s.io/cluster-api/internal/step"
)

// blackHole is a workload cluster that is connected, and then answers nothing for as long as anybody waits.
type blackHole struct {
	*fakeCluster
	// nodes whose members are silent; nil: nothing answers.
	nodes []string
	mu    sync.Mutex
	asked []string
}

func (h *blackHole) Etcd(ctx context.Context, nodes []string) []EtcdMember {
	h.mu.Lock()
	h.asked = append(h.asked, nodes...)
	h.mu.Unlock()
	answers := h.fakeCluster.Etcd(ctx, nodes)
	for i := range answers {
		if h.nodes == nil || slices.Contains(h.nodes, answers[i].Node) {
			<-ctx.Done()
			answers[i] = EtcdMember{Node: answers[i].Node, Err: ctx.Err()}
		}
	}
	return answers
}

func (h *blackHole) KubeadmConfigExists(ctx context.Context) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func (h *blackHole) RemoveEtcdMember(ctx context.Context, _ string, _ []string) error {
	<-ctx.Done()
	return ctx.Err()
}

// reconciled is what a reconcile has to do with its workload cluster. The control plane is as wanted.
func (b *bench) reconciled(ctx context.Context, w Workload) (time.Duration, error) {
	b.observed = nil
	b.workload = b.bound(b.scope, w)
	result, err := step.Run(ctx, b.scope, b.inspect, b.terminate, b.prune)
	return result.After(), err
}

// Fifteen clusters that hang and ten workers: all others are served, from the first minute on.
func TestClustersThatHangLeaveWorkersToOthers(t *testing.T) {
	const workers, hanging, serving, duration = 10, 15, 5, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		queue := workqueue.NewTypedDelayingQueue[int]()
		clusters := make([]*bench, hanging+serving)
		workloads := make([]Workload, hanging+serving)
		for i := range clusters {
			b, f := three(t)
			b.Clock = clock.RealClock{} // that of the bubble
			clusters[i], workloads[i] = b, f
			if i < hanging {
				workloads[i] = &blackHole{fakeCluster: f}
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
				t.Errorf("cluster %d was served %d times in %s", i, served[i], duration)
			}
		}
		if worst > reconcileLimit {
			t.Errorf("a cluster that answers waited %s for a worker", worst)
		}
		if share := busy.Seconds() / (workers * duration.Seconds()); share > 0.2 {
			t.Errorf("clusters that hang have %.0f %% of the workers", 100*share)
		}
	})
}

// All calls of one reconcile together end in time.
func TestAReconcileEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := three(t)
		b.Clock = clock.RealClock{}
		f.etcd["x"] = false // a stray, to be removed
		hole, begun := &blackHole{fakeCluster: f, nodes: []string{"b"}}, time.Now()
		_, err := b.reconciled(t.Context(), hole)
		_, exists := b.workload.KubeadmConfigExists(t.Context())
		if err == nil || !errors.Is(exists, errPaused) {
			t.Errorf("errors %v and %v", err, exists)
		}
		if took := time.Since(begun); took > reconcileLimit {
			t.Errorf("it took %s, want %s at most", took, reconcileLimit)
		}
	})
}

// Who was silent is left alone for longer and longer; the others are asked all the while.
func TestSilentMembersAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := three(t)
		b.Clock = clock.RealClock{}
		hole, start := &blackHole{fakeCluster: f, nodes: []string{"b"}}, time.Now()
		var asked []time.Duration
		for time.Since(start) < 3*time.Minute {
			hole.asked = nil
			answers := b.bound(b.scope, hole).Etcd(t.Context(), []string{"a", "b", "c"})
			if slices.Contains(hole.asked, "b") {
				asked = append(asked, time.Since(start).Round(time.Second))
			}
			if answers[0].Err != nil || answers[1].Err == nil || answers[2].Err != nil {
				t.Fatalf("answers %+v", answers)
			}
			time.Sleep(time.Second) // virtual
		}
		want := []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, 55 * time.Second, 100 * time.Second, 165 * time.Second}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("it is asked at (-want +got):\n%s", diff)
		}
		hole.nodes = []string{}
		time.Sleep(lastPause)
		b.bound(b.scope, hole).Etcd(t.Context(), []string{"b"})
		if b.pauses.on(b.kcp.UID, theMember+"b", time.Now()) || len(b.pauses.known[b.kcp.UID]) != 0 {
			t.Error("it answers, and is not forgotten")
		}
	})
}

// A call that fails at once is no reason to wait.
func TestErrorsAreNotHanging(t *testing.T) {
	b, f := three(t)
	b.Clock = testclock.NewFakePassiveClock(now)
	f.deaf = errors.New("refused")
	w := b.bound(b.scope, f)
	for range 2 {
		if _, err := w.KubeadmConfigExists(t.Context()); !errors.Is(err, f.deaf) {
			t.Errorf("error %v", err)
		}
	}
}
