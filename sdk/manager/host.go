package manager

import (
	"context"
	"io"
	"net"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Purposes of listeners, for Host.Listen. They are the names of the container ports in our Deployments.
const (
	ListenWebhook     = "webhook-server" // TLS with the certificate of WebhookService
	ListenHealth      = "healthz"        // HTTP, /healthz and /readyz
	ListenDiagnostics = "metrics"        // HTTP or HTTPS as the flags say, /metrics and more
	ListenProfiler    = "profiler"       // HTTP, /debug/pprof/
)

// Host replaces parts of the process that a component runs in. The zero value is for a process with one component.
//
// A Host with Listen has several components in one process. Then nothing is changed that belongs to the whole process:
// logging flags are ignored (configure logging and controller-runtime's log.SetLogger before), the log
// level cannot be changed over HTTP, contention profiling is up to the host, and controllers of several components may
// have the same name. The host, not a Lease, decides which replica of a component reconciles, see Lead.
type Host struct {
	// Config is the connection to the API server. Nil: --kubeconfig, otherwise the in-cluster configuration. Its QPS and Burst
	// are only overridden by flags that are set explicitly.
	Config *rest.Config
	// Namespace is the namespace of the component's own objects. Empty: POD_NAMESPACE, otherwise the pod's namespace.
	Namespace string
	// Listen opens a listener for one of the purposes above, unless a flag disables the endpoint. It may
	// return nil, except for webhooks: then the endpoint is not served. Nil: TCP listeners at the addresses of the flags.
	Listen func(purpose string) (net.Listener, error)
	// Lead returns nil once no other replica of the component reconciles, until this one ends, or the error of ctx. Controllers
	// start then; webhooks and health checks do not wait for it. It is only used with Listen, where it replaces --leader-elect.
	// Nil: this is the only replica.
	Lead func(ctx context.Context) error
	// Dial connects to an address that may be the name of a Service, as <name>.<namespace>.svc. Nil: the network, with DNS.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// CertDir is a directory with the webhook certificate, as tls.crt and tls.key. API servers must trust it already. It is only used with
	// Listen, where --webhook-cert-dir has no effect. Empty: the component issues a certificate itself.
	CertDir string
	// WrapWorkload wraps the transports of connections to workload clusters, for example to observe their requests. Nil: they are not wrapped.
	WrapWorkload transport.WrapperFunc
	// Getenv reads the environment. Nil: os.Getenv.
	Getenv func(string) string
	// Logger is the logger of the component. Zero: klog.
	Logger logr.Logger
	// Stdout receives --help and --version, Stderr notices about deprecated flags. Nil: those of the process.
	Stdout, Stderr io.Writer
}

func (h Host) withDefaults() Host {
	if h.Dial == nil {
		h.Dial = (&net.Dialer{}).DialContext
	}
	if h.Getenv == nil {
		h.Getenv = os.Getenv
	}
	if h.Stdout == nil {
		h.Stdout = os.Stdout
	}
	if h.Stderr == nil {
		h.Stderr = os.Stderr
	}
	return h
}

// shared reports whether other components run in the same process.
func (h Host) shared() bool {
	return h.Listen != nil
}
