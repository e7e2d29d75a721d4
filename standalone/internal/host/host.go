package host

import (
	"context"
	"net"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

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
	// CertDir has the webhook certificate as tls.crt and tls.key, which API servers trust. Empty: the program issues one.
	CertDir string
	// WrapWorkload wraps the transports of connections to workload clusters. It may be nil.
	WrapWorkload transport.WrapperFunc
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

// alive returns the instances of a Deployment that have not ended, and forgets the others. The caller holds the lock.
func (h *host) alive(key types.NamespacedName) []*instance {
	alive := slices.DeleteFunc(h.instances[key], (*instance).hasEnded)
	if len(alive) == 0 {
		delete(h.instances, key)
	} else {
		h.instances[key] = alive
	}
	return alive
}
