package remote

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// firstRetry and lastRetry are the limits of the backoff between attempts to connect.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 15 * time.Second
	// rejectedRetry is the pause after a connection was rejected, which rarely changes by itself. A changed kubeconfig is used as
	// soon as a controller calls Get, which an event triggers.
	rejectedRetry = 5 * time.Minute
	// syncTimeout is how long filling a cache may take.
	syncTimeout = 5 * time.Minute
	// silence is how long the watches of a cluster may receive nothing: API servers send bookmarks every minute.
	silence = 150 * time.Second
	// checkInterval is the number of seconds in which what watches receive counts as one health check, in metrics.
	checkInterval = 10
	// requestTimeout is the timeout of all requests except watches.
	requestTimeout = 10 * time.Second
)

// Options configure Clusters.
type Options struct {
	// Secrets is a cache with the kubeconfig Secrets and the Clusters, usually the manager's. The connection to a cluster ends
	// when its Secret is deleted or its kubeconfig changes.
	Secrets cache.Cache
	// Scheme has the kinds that are read from and written to workload clusters.
	Scheme *runtime.Scheme
	// UserAgent is the user agent of requests to workload clusters.
	UserAgent string
	// Cached are the kinds that are cached. All other kinds are read live.
	Cached []Cached
	Clock  clock.WithTickerAndDelayedExecution
	// Policy restricts what kubeconfigs may use.
	Policy Policy
	// QPS limits the requests to each workload cluster per second, on average, and Burst in a burst. Zero or negative QPS: no limit.
	QPS   float32
	Burst int
	// Management is the connection of this process to the management cluster. A workload cluster that is the management cluster
	// itself is connected at the same address. Nil: at the address in its kubeconfig, as all others.
	Management *rest.Config
	// Metrics is the registry of metrics about connections. Nil: there are none.
	Metrics prometheus.Registerer
	// CheckLeader returns an error if writes must no longer be sent (manager.Environment.CheckLeader). Nil: they always are.
	CheckLeader func() error

	// Wrap wraps the transports of all connections, those of Cluster.Config, too. Nil: they are not wrapped.
	Wrap transport.WrapperFunc

	dial   dialFunc        // nil: what Policy allows
	pool   *pool           // for the memory of all caches
	known  meta.RESTMapper // of the kinds in Scheme
	codecs serializer.CodecFactory
}

// Cached is a kind of workload cluster object that is cached.
type Cached struct {
	// Object is an empty object of the kind.
	Object client.Object
	// Namespace is the only namespace that is watched. Empty: all.
	Namespace string
	// Labels selects the objects that are watched. Nil: all.
	Labels labels.Selector
	// Transform removes fields that are not read. It must be idempotent. Managed fields are always removed.
	Transform toolscache.TransformFunc
	// Indexes by field name.
	Indexes map[string]client.IndexerFunc
}
