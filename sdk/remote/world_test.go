package remote

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// patience bounds how long a test waits for what must happen, under the race detector on a busy machine.
const patience = 3 * time.Minute

var (
	blue  = types.NamespacedName{Namespace: "default", Name: "blue"}
	green = types.NamespacedName{Namespace: "default", Name: "green"}
)

// pauses is a clock whose pauses are ended by the test.
type pauses struct {
	clock.RealClock
	begun chan time.Duration
	end   chan time.Time
	// stood is how long connections are said to have stood, in nanoseconds.
	stood atomic.Int64
	// silence ends the latest connection, as after a time without events; heard counts events.
	silence atomic.Pointer[func()]
	heard   atomic.Int64
}

// AfterFunc implements clock.WithDelayedExecution.
func (p *pauses) AfterFunc(d time.Duration, f func()) clock.Timer {
	p.silence.Store(&f)
	return &countedTimer{Timer: p.RealClock.AfterFunc(d, f), resets: &p.heard}
}

// countedTimer counts how often it is set anew.
type countedTimer struct {
	clock.Timer
	resets *atomic.Int64
}

// Reset implements clock.Timer.
func (c *countedTimer) Reset(d time.Duration) bool {
	c.resets.Add(1)
	return c.Timer.Reset(d)
}

// Since implements clock.PassiveClock.
func (p *pauses) Since(time.Time) time.Duration { return time.Duration(p.stood.Load()) }

// After implements clock.Clock.
func (p *pauses) After(d time.Duration) <-chan time.Time {
	p.begun <- d
	return p.end
}

// NewTimer implements clock.Clock. There is no pause before listing again.
func (p *pauses) NewTimer(time.Duration) clock.Timer { return p.RealClock.NewTimer(0) }

// next returns how long the next pause takes, once it has begun.
func (p *pauses) next(t *testing.T) time.Duration {
	t.Helper()
	select {
	case d := <-p.begun:
		return d
	case <-time.After(patience):
		t.Fatal("no pause has begun")
		return 0
	}
}

// world is a management cluster with Clusters, and a controller that handles all their events.
type world struct {
	t          *testing.T
	management client.Client
	clusters   *Clusters
	pauses     *pauses
	events     chan string
	passed     map[string]int
	stop       func()
	// secrets and gone are the handlers that Clusters adds for events of Secrets and of Clusters.
	secrets, gone chan toolscache.ResourceEventHandler
}

// informers record the handlers that are added to them.
type informers struct {
	*informertest.FakeInformers
	w *world
}

// GetInformer returns the informer of a kind.
func (i informers) GetInformer(_ context.Context, kind client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	handlers := i.w.secrets
	if _, isCluster := kind.(*clusterv1.Cluster); isCluster {
		handlers = i.w.gone
	}
	return informer{FakeInformer: controllertest.NewFakeInformer(), handlers: handlers}, nil
}

type informer struct {
	*controllertest.FakeInformer
	handlers chan toolscache.ResourceEventHandler
}

// AddEventHandler hands the handler over.
func (i informer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers <- h
	return i.FakeInformer.AddEventHandler(h)
}

// handler waits for a handler of Clusters.
func (w *world) handler(of chan toolscache.ResourceEventHandler) toolscache.ResourceEventHandler {
	w.t.Helper()
	select {
	case h := <-of:
		return h
	case <-time.After(patience):
		w.t.Fatal("Clusters adds no handler")
		return nil
	}
}

// newWorld starts Clusters. A listener gets "connection <cluster>" and "<node> of <cluster>" as events.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, management: fake.NewClientBuilder().Build(), events: make(chan string, 1000), passed: map[string]int{},
		secrets: make(chan toolscache.ResourceEventHandler, 1), gone: make(chan toolscache.ResourceEventHandler, 1),
		pauses: &pauses{begun: make(chan time.Duration, 1000), end: make(chan time.Time)},
	}
	w.clusters = New(Options{
		Secrets: struct {
			client.Reader
			cache.Informers
		}{w.management, informers{w: w}}, Scheme: clientgoscheme.Scheme, UserAgent: "test", Cached: []Cached{Nodes()}, Clock: w.pauses, Policy: Policy{Loopback: true},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	started := w.clusters
	go func() { ended <- started.Start(ctx) }()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.stop = func() {}
	}
	t.Cleanup(func() { w.stop() })
	return w
}

// listen subscribes to everything.
func (w *world) listen() {
	w.t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	w.t.Cleanup(q.ShutDown)
	request := func(name string) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
	}
	err := w.clusters.Source(Events{
		Connection: func(_ context.Context, cluster types.NamespacedName) []reconcile.Request {
			return request("connection " + cluster.Name)
		},
		Watches: []Watch{{
			Object: &corev1.Node{},
			Requests: func(_ context.Context, cluster types.NamespacedName, obj client.Object) []reconcile.Request {
				return request(obj.GetName() + " of " + cluster.Name)
			},
			Changed: func(before, after client.Object) bool {
				return before.(*corev1.Node).Spec.ProviderID != after.(*corev1.Node).Spec.ProviderID
			},
		}},
	}).Start(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		for {
			r, shutdown := q.Get()
			if shutdown {
				return
			}
			w.events <- r.Name
			q.Done(r)
		}
	}()
}

// await waits for an event. Earlier events are kept for later calls.
func (w *world) await(event string) {
	w.t.Helper()
	if w.passed[event] > 0 {
		w.passed[event]--
		return
	}
	for deadline := time.After(patience); ; {
		select {
		case e := <-w.events:
			if e == event {
				return
			}
			w.passed[e]++
		case <-deadline:
			w.t.Fatalf("the event %q did not arrive", event)
		}
	}
}

// connected blocks until a cluster is connected, and asks again for it with every event only, as a controller does.
func (w *world) connected(key types.NamespacedName) *Cluster {
	w.t.Helper()
	for {
		cluster, err := w.clusters.Get(w.t.Context(), key)
		if err == nil {
			return cluster
		}
		if !IsNotConnected(err) {
			w.t.Fatalf("getting %s: %v", key, err)
		}
		w.await("connection " + key.Name)
	}
}

// lost waits until a cluster is disconnected, and returns the error of Get.
func (w *world) lost(key types.NamespacedName) error {
	w.t.Helper()
	for {
		w.await("connection " + key.Name)
		if _, err := w.clusters.Get(w.t.Context(), key); IsNotConnected(err) {
			return err
		}
	}
}

// secret writes the kubeconfig Secret of a cluster.
func (w *world) secret(key types.NamespacedName, kubeconfig []byte) *corev1.Secret {
	w.t.Helper()
	s := pki.NewSecret(key, pki.Kubeconfig, map[string][]byte{pki.KubeconfigKey: kubeconfig}, nil)
	if err := w.management.Create(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
	return s
}
