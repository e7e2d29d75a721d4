package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// workers is how many Deployments are reconciled in parallel. Starting and stopping do not block a worker.
const workers = 4

// Program is a component. It runs until the context ends or it fails, and releases all resources before it returns.
type Program func(ctx context.Context, args []string, process Process) error

// Process is the environment of a Program, instead of that of a container.
type Process struct {
	// Config connects to the API server as the Deployment's ServiceAccount, without a rate limit.
	Config *rest.Config
	// Namespace is the Deployment's namespace.
	Namespace string
	// Listen opens a listener for a container port, by its name, such as "webhook-server". Services reach it by that name
	// or its number. Opening it again replaces the earlier listener.
	Listen func(port string) (net.Listener, error)
	// Lead returns nil once all earlier instances of the Deployment have ended, or the error of ctx. Until then, the program
	// must not reconcile, or use DataDir.
	Lead func(ctx context.Context) error
	// Dial connects to an address, which can be the name of a Service, as <name>.<namespace>.svc, and a port of it.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// DataDir is a directory, not created yet, for what a container would store in a volume: it belongs to the Deployment
	// and outlives the process.
	DataDir string
	// Getenv reads the container's environment.
	Getenv func(name string) string
	// Logger has the Deployment's name.
	Logger logr.Logger
}

// Options are what to host and how.
type Options struct {
	// Config has all permissions on the API server and no rate limit.
	Config *rest.Config
	// Server and CAData are for components to connect to the API server.
	Server string
	CAData []byte
	// Programs are the components, by the last element of their image's name.
	Programs map[string]Program
	// Egress is where the API server requests connections to Services. Run takes ownership of it.
	Egress net.Listener
	// DataDir is where components store files.
	DataDir string
	Logger  logr.Logger
	Clock   clock.WithTicker
}

// host is the state of Run.
type host struct {
	Options
	client     client.Client
	live       client.Reader
	kubernetes kubernetes.Interface
	recorder   events.EventRecorder
	changes    chan event.GenericEvent

	// running ends when the host stops; instances outlive the reconciles that start them.
	running context.Context //nolint:containedctx // see above

	mu sync.Mutex
	// instances are those that have not ended, by Deployment, from the oldest to the newest.
	instances map[types.NamespacedName][]*instance
}

// Run hosts components until the context ends. It returns when every component has stopped.
func Run(ctx context.Context, o Options) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("create the host's scheme: %w", err)
	}
	mgr, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme:  scheme,
		Logger:  o.Logger,
		Metrics: server.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
		// Controller names must be unique per process, which runs other managers.
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("create the host's manager: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return fmt.Errorf("create the host's client: %w", err)
	}
	h := &host{
		Options: o, client: mgr.GetClient(), live: mgr.GetAPIReader(), kubernetes: clientset,
		recorder: mgr.GetEventRecorder("capi"), changes: make(chan event.GenericEvent, 64),
		running: ctx, instances: map[types.NamespacedName][]*instance{},
	}
	if err := h.setup(ctx, mgr); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	h.wait()
	return err
}

// setup registers the controller and the proxy.
func (h *host) setup(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Service{}, clusterIPIndex, clusterIPs); err != nil {
		return fmt.Errorf("index Services by address: %w", err)
	}
	err := builder.ControllerManagedBy(mgr).Named("host").
		For(&appsv1.Deployment{}, builder.WithPredicates(h.orphaning())).
		Watches(&corev1.Service{}, handler.EnqueueRequestsFromMapFunc(h.neighbors)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(h.neighbors)).
		WatchesRawSource(source.Channel(h.changes, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(h)
	if err != nil {
		return fmt.Errorf("set up the host's controller: %w", err)
	}
	return mgr.Add(&proxy{host: h, listener: h.Egress})
}

// wait returns when all instances have stopped.
func (h *host) wait() {
	h.mu.Lock()
	instances := slices.Concat(slices.Collect(maps.Values(h.instances))...)
	h.mu.Unlock()
	for _, i := range instances {
		i.cancel()
	}
	for _, i := range instances {
		<-i.ended
	}
}
