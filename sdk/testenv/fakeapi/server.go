package fakeapi

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/reference"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/testenv"
	"sigs.k8s.io/cluster-api/sdk/testenv/object"
)

// events is the number of events that a controller can record before the test reads them. More block.
const events = 1000

// Options configures a Server in memory.
type Options struct {
	// Kinds are added to the scheme, which has those of testenv.Scheme.
	Kinds []func(*runtime.Scheme) error
	// Objects exist from the start. The Server copies them.
	Objects []client.Object
	// Indexes are those of the controllers.
	Indexes []step.Index
}

// Server is an API server as users and other controllers see it. ForController returns the view of the controllers under test.
// Its fields must not be changed or read while a controller is running in another goroutine.
type Server struct {
	client.Client
	// Cache is what the controllers of the next ForController read without step.Clients.Live. Each process has a cache: assign another
	// one (NewCache) for the next process.
	Cache *View
	// Live is what controllers read with step.Clients.Live. It has objects that the API server does not have if a test shows them.
	Live     *View
	Recorder *record.FakeRecorder
	// Clock starts at object.Now for a Server in memory, at the current time otherwise.
	Clock *testclock.FakeClock
	Faults

	// Writes are the writes that controllers have sent, failed ones included, such as "patch Machine/status m-1". The Workload's are
	// among them.
	Writes []string
	// LiveReads are the reads of controllers that no cache has answered, such as "get Machine m-1" or "list Machine".
	LiveReads []string

	t         testing.TB
	mu        sync.Mutex // guards Writes, LiveReads and Workload.Requests while controllers are running
	direct    client.WithWatch
	namespace string
	indexes   []step.Index
}

// New returns a Server in memory. All kinds of the scheme with a field Status have a status subresource. Objects get UIDs.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	scheme := testenv.Scheme(t, o.Kinds...)
	var created atomic.Int64
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme))
	b = b.WithStatusSubresource(withStatus(scheme)...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			if obj.GetUID() == "" {
				obj.SetUID(types.UID(fmt.Sprintf("created-%d", created.Add(1))))
			}
			return c.Create(ctx, obj, opts...)
		},
	})
	for _, obj := range o.Objects {
		b.WithObjects(copyOf(obj))
	}
	for _, i := range o.Indexes {
		b.WithIndex(i.Object, i.Field, i.Values)
	}
	return newServer(t, b.Build(), "", o.Indexes, object.Now())
}

// Over returns a Server whose objects are in a namespace of a real API server; direct is a client without cache.
func Over(t testing.TB, direct client.WithWatch, namespace string) *Server {
	t.Helper()
	return newServer(t, direct, namespace, nil, time.Now())
}

func newServer(t testing.TB, direct client.WithWatch, namespace string, indexes []step.Index, now time.Time) *Server {
	s := &Server{
		Client: direct, Recorder: record.NewFakeRecorder(events), Clock: testclock.NewFakeClock(now),
		t: t, direct: direct, namespace: namespace, indexes: indexes,
	}
	s.Cache, s.Live = s.NewCache(), s.NewCache()
	return s
}

// NewCache returns a cache that is up to date.
func (s *Server) NewCache() *View {
	v := &View{t: s.t, live: s.direct, scheme: s.Scheme(), namespace: s.namespace, indexes: s.indexes}
	v.Thaw()
	return v
}

// ForController returns what a controller of a process with the current Cache uses. The controller does not wait until the cache has its
// writes: it has them at once, or is frozen.
func (s *Server) ForController() step.Clients {
	cache := s.Cache
	live := interceptor.NewClient(s.direct, s.reads(s.Live, false))
	funcs := s.writes()
	cached := s.reads(cache, true)
	funcs.Get, funcs.List = cached.Get, cached.List
	return step.Clients{Client: interceptor.NewClient(s.direct, funcs), Live: live, Recorder: s.Recorder, Clock: s.Clock, VisibleWait: -1}
}

// Events returns the events that were recorded since the last call, such as "Normal Provisioned Cluster c is Provisioned".
func (s *Server) Events() []string {
	var out []string
	for len(s.Recorder.Events) > 0 {
		out = append(out, <-s.Recorder.Events)
	}
	return out
}

// External returns a reader of provider objects for a controller.
func External(clients step.Clients) external.Reader {
	return external.Reader{Client: clients.Client, Versions: contract.APIVersions{Reader: clients.Client}}
}

// Follower returns a follower of the references of the objects in referrers, an empty list, for a controller. It has no Live, and its
// watches never send an event.
func Follower(t testing.TB, clients step.Clients, referrers client.ObjectList) *reference.Follower {
	t.Helper()
	kind, err := kindOf(referrers, clients.Client.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	return &reference.Follower{
		Client: clients.Client, Reader: External(clients), Kind: kind, Referrers: referrers,
		Watcher: external.NewWatcher(watches{}, &informertest.FakeInformers{}),
	}
}

type watches struct{}

// Watch implements the interface of external.NewWatcher.
func (watches) Watch(source.Source) error { return nil }

// withStatus returns an object of each kind that has a field Status.
func withStatus(scheme *runtime.Scheme) []client.Object {
	var out []client.Object
	for kind, is := range scheme.AllKnownTypes() {
		if _, ok := is.FieldByName("Status"); !ok || kind.Version == runtime.APIVersionInternal {
			continue
		}
		if obj, ok := reflect.New(is).Interface().(client.Object); ok {
			obj.GetObjectKind().SetGroupVersionKind(kind)
			out = append(out, obj)
		}
	}
	return out
}

func copyOf(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object)
}
