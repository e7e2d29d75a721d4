package manager

import (
	"io"
	"net"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
)

// Purposes of listeners, as Host.Listen is asked for them. They are the names of the container ports in our Deployments.
const (
	ListenWebhook     = "webhook-server" // TLS with the certificate of WebhookService
	ListenHealth      = "healthz"        // HTTP, /healthz and /readyz
	ListenDiagnostics = "metrics"        // HTTP or HTTPS as the flags say, /metrics and more
	ListenProfiler    = "profiler"       // HTTP, /debug/pprof/
)

// Host replaces parts of the process that a component runs in. The zero value is a process of the component's own.
//
// A Host with Listen has other components in its process. Then nothing is touched that belongs to the whole process:
// logging flags are accepted and ignored (configure logging and controller-runtime's log.SetLogger before), the log
// level cannot be changed over HTTP, contention profiling is the host's, and controllers of several components may
// have the same name. The component is also the only replica: --leader-elect takes no Lease.
type Host struct {
	// Config is the identity to use. Nil: --kubeconfig, else the in-cluster identity. QPS and Burst that are set
	// here are only overruled by flags that are given explicitly.
	Config *rest.Config
	// Namespace is where the component's own objects are. Empty: POD_NAMESPACE, else the pod's namespace.
	Namespace string
	// Listen opens a listener for one of the purposes above, unless a flag switches that endpoint off. It may
	// return nil to leave an endpoint unserved, except for webhooks. Nil: TCP at the addresses of the flags.
	Listen func(purpose string) (net.Listener, error)
	// Getenv reads the environment. Nil: os.Getenv.
	Getenv func(string) string
	// Logger is what everything logs to. Zero: klog.
	Logger logr.Logger
	// Stdout gets --help and --version, Stderr notices about deprecated flags. Nil: those of the process.
	Stdout, Stderr io.Writer
}

func (h Host) withDefaults() Host {
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

// shared tells whether other components live in the same process.
func (h Host) shared() bool {
	return h.Listen != nil
}
