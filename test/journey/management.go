package journey

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	controlplanev1beta2 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1beta2 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	dockerv1 "sigs.k8s.io/cluster-api/api/infrastructure/docker/v1beta1"
)

const (
	// conditionTimeout is how long a Condition may take to become true: many times what it takes on an idle machine, because all journeys
	// share two cores, and some machines are half as fast. slowTimeout is for machines that take a minute to start, one after another.
	conditionTimeout = 8 * time.Minute
	slowTimeout      = 15 * time.Minute
	// tick is how often a Condition is checked if nothing changes in the management cluster: it may depend on the workload
	// cluster.
	tick = 500 * time.Millisecond
)

// watched returns one object of each kind in a Snapshot.
func watched() []client.Object {
	return []client.Object{
		&clusterv1.Cluster{}, &controlplanev1.KubeadmControlPlane{}, &clusterv1.MachineDeployment{},
		&clusterv1.MachineSet{}, &clusterv1.MachinePool{}, &clusterv1.Machine{},
	}
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(scheme.AddToScheme(s), clusterv1.AddToScheme(s), clusterv1beta2.AddToScheme(s),
		controlplanev1.AddToScheme(s), controlplanev1beta2.AddToScheme(s), dockerv1.AddToScheme(s))
}

// Management is a management cluster with its providers.
type Management struct {
	// Config connects as an administrator.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file with the same credentials.
	Kubeconfig string
	// Client reads and writes without a cache.
	Client client.WithWatch
	// Tools are the users' programs.
	Tools *Tools
	// LogFile is the path of the management cluster's log.
	LogFile string

	cache   cache.Cache
	changes changes
	ports   atomic.Int32 // how many ports tests have reserved
}

// connect returns a Management that watches the cluster until the context ends.
func connect(ctx context.Context, config *rest.Config, kubeconfig, logFile string, tools *Tools) (*Management, error) {
	s, err := newScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	m := &Management{Config: config, Kubeconfig: kubeconfig, Tools: tools, LogFile: logFile}
	if m.Client, err = client.NewWithWatch(config, client.Options{Scheme: s}); err != nil {
		return nil, fmt.Errorf("connecting to the management cluster: %w", err)
	}
	shallow := true // Conditions only read.
	m.cache, err = cache.New(config, cache.Options{Scheme: s, DefaultUnsafeDisableDeepCopy: &shallow})
	if err != nil {
		return nil, fmt.Errorf("creating a cache of the management cluster: %w", err)
	}
	for _, o := range watched() {
		if _, err := m.listen(ctx, o, func(o client.Object, _ bool) { m.changes.announce(o.GetNamespace()) }); err != nil {
			return nil, err
		}
	}
	go func() { _ = m.cache.Start(ctx) }() // It returns when the context ends, and fails only if started twice.
	if !m.cache.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("waiting for the cache of the management cluster: %w", ctx.Err())
	}
	return m, nil
}

// listen calls f for every event of a kind, in order, until the context ends. The returned function reports whether f was
// called for all objects of the initial list.
func (m *Management) listen(
	ctx context.Context, kind client.Object, f func(o client.Object, deleted bool),
) (toolscache.InformerSynced, error) {
	informer, err := m.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f(o.(client.Object), false) },
		UpdateFunc: func(_, o any) { f(o.(client.Object), false) },
		DeleteFunc: func(o any) {
			if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = last.Obj
			}
			f(o.(client.Object), true)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) })
	return registration.HasSynced, nil
}

// waitForCache waits until the cache has an object that was written, so that a test reads its own writes.
func (m *Management) waitForCache(ctx context.Context, written client.Object) error {
	current := m.emptyOf(written)
	if current == nil {
		return nil // Snapshots do not have this kind.
	}
	want, err := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("resource version of %s: %w", written.GetName(), err)
	}
	for {
		changed := m.changes.next(written.GetNamespace())
		if err := m.cache.Get(ctx, client.ObjectKeyFromObject(written), current); err == nil {
			if have, _ := strconv.ParseUint(current.GetResourceVersion(), 10, 64); have >= want {
				return nil
			}
		}
		select {
		case <-changed:
		case <-time.After(tick):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// emptyOf returns an empty object of the same watched kind, or nil.
func (m *Management) emptyOf(o client.Object) client.Object {
	want, err := m.Client.GroupVersionKindFor(o)
	if err != nil {
		return nil
	}
	for _, kind := range watched() {
		if have, err := m.Client.GroupVersionKindFor(kind); err == nil && have == want {
			return kind
		}
	}
	return nil
}

// World returns a namespace of the management cluster for one test.
func (m *Management) World(t testing.TB) *World {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "journey-"}}
	// While other management clusters start, the API server may take longer for a handshake than a client waits.
	overloaded := func(err error) bool { return utilnet.IsTimeout(err) || apierrors.IsTimeout(err) }
	if err := retry.OnError(retry.DefaultBackoff, overloaded, func() error { return m.Client.Create(t.Context(), ns) }); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	// Kubernetes creates a ServiceAccount. All later objects are consequences of the test.
	account := client.ObjectKey{Namespace: ns.Name, Name: "default"}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, conditionTimeout, true, func(ctx context.Context) (bool, error) {
		err := m.Client.Get(ctx, account, &corev1.ServiceAccount{})
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("waiting for the default ServiceAccount of namespace %s: %v", ns.Name, err)
	}
	return &World{Management: m, Namespace: ns.Name, t: t, timeout: conditionTimeout}
}

// changes notifies waiting goroutines of changes in a namespace.
type changes struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

// next returns a channel that is closed at the next change in the namespace.
func (c *changes) next(namespace string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[string]chan struct{}{}
	}
	if c.waiting[namespace] == nil {
		c.waiting[namespace] = make(chan struct{})
	}
	return c.waiting[namespace]
}

func (c *changes) announce(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch := c.waiting[namespace]; ch != nil {
		close(ch)
		delete(c.waiting, namespace)
	}
}

// freePortBelow returns a port below a limit that nothing listens on. Each is returned once.
func (m *Management) freePortBelow(t testing.TB, limit int) int {
	t.Helper()
	for range 1000 {
		port := limit - int(m.ports.Add(1))
		listener, err := net.Listen("tcp", net.JoinHostPort(managedHost, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return 0
}
