package events

import (
	"context"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/enginetest"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
)

// patience limits waiting for things that must happen.
const patience = 2 * time.Minute

type world struct {
	t       *testing.T
	runtime *enginetest.Fake
	clock   *clocktesting.FakeClock
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func start(t *testing.T) *world {
	t.Helper()
	w := &world{
		t: t, runtime: enginetest.New(), clock: clocktesting.NewFakeClock(time.Unix(0, 0)),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
	}
	stream := New(w.runtime, w.clock)
	source := stream.Source("DockerMachine", Lookup{
		All: func(context.Context) []reconcile.Request {
			return []reconcile.Request{request("all-1"), request("all-2")}
		},
		Named: func(_ context.Context, cluster, container string) []reconcile.Request {
			return []reconcile.Request{request("named-" + cluster + "-" + container)}
		},
	})
	if err := source.Start(t.Context(), w.queue); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- stream.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.queue.ShutDown()
	})
	w.eventually("the stream is open", func() bool { return w.runtime.Streams() == 1 })
	return w
}

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("still not: %s", what)
		}
	}
}

// requests returns the requests in the queue, sorted, once there are n.
func (w *world) requests(n int) []string {
	w.t.Helper()
	w.eventually("requests in the queue", func() bool { return w.queue.Len() >= n })
	var names []string
	for w.queue.Len() > 0 {
		one, _ := w.queue.Get()
		w.queue.Done(one)
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names
}

func (w *world) create(name string, labels map[string]string) {
	w.t.Helper()
	if err := w.runtime.EnsureImage(w.t.Context(), "image"); err != nil {
		w.t.Fatal(err)
	}
	if err := w.runtime.Create(w.t.Context(), engine.Container{Name: name, Image: "image", Labels: labels}); err != nil {
		w.t.Fatal(err)
	}
}

func TestEvents(t *testing.T) {
	w := start(t)
	w.create("unrelated", map[string]string{"a": "b"})
	w.create("of-another-kind", map[string]string{identity.ClusterLabel: "c", identity.KindLabel: "DockerCluster", identity.NamespaceLabel: "ns", identity.NameLabel: "x"})
	w.create("ours", map[string]string{identity.ClusterLabel: "c", identity.KindLabel: "DockerMachine", identity.NamespaceLabel: "ns", identity.NameLabel: "ours"})
	if got := w.requests(1); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("got %v, want the object in the labels", got)
	}
	w.create("old", map[string]string{identity.ClusterLabel: "c"})
	if got := w.requests(1); !slices.Equal(got, []string{"named-c-old"}) {
		t.Errorf("got %v, want the object by name", got)
	}
	w.runtime.Kill("ours", 1)
	if got := w.requests(1); !slices.Equal(got, []string{"ours"}) {
		t.Errorf("got %v after a container exited", got)
	}
}

func TestInterruption(t *testing.T) {
	w := start(t)
	if w.queue.Len() > 0 {
		t.Errorf("opening the stream for the first time requests %v: informers do that", w.requests(1))
	}
	w.runtime.Break()
	w.eventually("the stream is closed", func() bool { return w.runtime.Streams() == 0 })
	w.eventually("the pause has begun", w.clock.HasWaiters)
	w.create("missed", map[string]string{identity.ClusterLabel: "c", identity.KindLabel: "DockerMachine", identity.NamespaceLabel: "ns", identity.NameLabel: "missed"})
	w.clock.Step(time.Minute)
	if got := w.requests(2); !slices.Equal(got, []string{"all-1", "all-2"}) {
		t.Errorf("got %v, want all objects", got)
	}
}
