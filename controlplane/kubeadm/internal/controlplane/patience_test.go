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
	result, err := b.take(ctx, "inspect", "terminate", "prune")
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
		if worst > 2*callLimit {
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
		for _, node := range []string{"a", "b", "c", "d"} {
			hole.nodes = []string{node}
			b.workload.Etcd(t.Context(), []string{node})
		}
		_, exists := b.workload.KubeadmConfigExists(t.Context())
		removed := b.workload.RemoveEtcdMember(t.Context(), "b", []string{"a"})
		if err == nil || !errors.Is(exists, errPaused) || !errors.Is(removed, errPaused) {
			t.Errorf("errors %v, %v and %v", err, exists, removed)
		}
		if took := time.Since(begun); took > questionsLimit+changesLimit {
			t.Errorf("it took %s, want %s at most", took, questionsLimit+changesLimit)
		}
	})
}

// slowEtcd answers everything, each call just in time. What a removal asks for takes three calls.
type slowEtcd struct {
	*fakeCluster
	lags string // the Node whose member does not know c yet
}

const justInTime = callLimit - 100*time.Millisecond

func (e slowEtcd) Etcd(_ context.Context, nodes []string) []EtcdMember {
	time.Sleep(justInTime) // virtual
	answers := e.fakeCluster.Etcd(context.Background(), nodes)
	for i := range answers {
		if answers[i].Node == e.lags {
			answers[i].Members = []string{"a", "b"}
		}
	}
	return answers
}

func (e slowEtcd) RemoveEtcdMember(ctx context.Context, name string, via []string) error {
	for range 3 {
		select {
		case <-time.After(justInTime):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return e.fakeCluster.RemoveEtcdMember(ctx, name, via)
}

// What was asked before must not take the time that a removal needs, nor have it blamed for being slow.
func TestMembersThatAreSlowCanLeave(t *testing.T) {
	for reason, lags := range map[string]string{"they agree": "", "they disagree, and are asked twice": "a"} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, f := three(t)
				b.Clock = clock.RealClock{}
				b.deleted(t, "b")
				b.drained(t, "b")
				reload(t, b, f)
				if _, err := b.reconciled(t.Context(), slowEtcd{f, lags}); err != nil {
					t.Fatal(err)
				}
				if got := b.held(t); !slices.Equal(got, []string{"a", "c"}) {
					t.Errorf("held are %q, want no longer b", got)
				}
			})
		})
	}
}

// A call that had no time left says nothing about what was called.
func TestCallsThatAreCutShortAreNotBlamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, f := three(t)
		b.Clock = clock.RealClock{}
		w := b.bound(b.scope, slowEtcd{fakeCluster: f})
		for range int(questionsLimit / callLimit) { // which leaves moments
			w.Etcd(t.Context(), []string{"a"})
		}
		hole := &blackHole{fakeCluster: f}
		w.Workload = hole
		begun := time.Now()
		if _, err := w.KubeadmConfigExists(t.Context()); err == nil || time.Since(begun) >= callLimit {
			t.Errorf("error %v after %s", err, time.Since(begun))
		}
		if b.pauses.on(b.kcp.UID, theAPIServer, time.Now()) {
			t.Error("the API server is left alone, although it had no time to answer")
		}
		if _, err := b.bound(b.scope, hole).KubeadmConfigExists(t.Context()); err == nil || !b.pauses.on(b.kcp.UID, theAPIServer, time.Now()) {
			t.Error("with the whole time and no answer it is left alone")
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
