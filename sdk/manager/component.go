package manager

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/sdk/apiversion"
	"sigs.k8s.io/cluster-api/sdk/feature"
)

// Component declares a controller manager. It is for one run: what its functions share (the variables of its
// flags, its feature gates) is created with it, by a constructor such as NewComponent of providers/core.
type Component struct {
	// Name is the name of program and image, e.g. "cluster-api-controller". It is also the user agent.
	Name string
	// Purpose is a sentence for --help: what the manager does.
	Purpose string
	// Namespace is where the component is installed by default, e.g. "capi-system". It is used for the leader
	// election Lease if the namespace cannot be detected.
	Namespace string
	// LeaderElectionID is the name of the Lease.
	LeaderElectionID string
	// LeaderElection are the defaults of the --leader-elect-* flags. Zero values mean 15s, 10s and 2s.
	LeaderElection LeaderElectionDurations

	// AddToScheme registers the kinds that the component reads or writes, other than those of core/v1.
	AddToScheme []func(*runtime.Scheme) error
	// Conversions converts kinds between their versions, so that the component's Go types may have another version than the stored
	// one, and its webhooks admit objects in all versions. A component with webhooks also converts for API servers. AddToScheme or
	// AddConverted must have the types of all versions. Patches have to be those of package apiversion. Nil: requests are in the
	// versions of the Go types.
	Conversions Conversions
	// AddConverted registers all versions of the kinds that Conversions has. What only AddConverted registers may be of other components:
	// the manager does not wait until it is served. Nil: nothing.
	AddConverted func(*runtime.Scheme) error
	// FeatureGates are set by --feature-gates. Nil: the flag has no effect.
	FeatureGates *feature.Gates
	// AddFlags adds the component's own flags. May be nil.
	AddFlags func(*pflag.FlagSet)
	// Validate validates the component's own flags; the error must name the flag. May be nil.
	Validate func() error

	// Cache changes how the manager caches objects. May be nil. By default, all objects are cached as they are,
	// except Secrets (only those with the label cluster.x-k8s.io/cluster-name). Components that do not need
	// managedFields save memory with o.DefaultTransform = cache.TransformStripManagedFields().
	Cache func(o *cache.Options)

	// WebhookService is the Service of the component's webhook server, e.g. "capi-webhook-service". Its
	// certificate is in the Secret "<WebhookService>-cert". Empty: the component has no webhooks.
	WebhookService string
	// Definitions selects the CustomResourceDefinitions of the component: the manager sets the CA bundle of their conversion webhooks, and
	// stores their objects again in the current version, for which it needs permissions (docs/book/managers.md). Nil: none.
	Definitions labels.Selector

	// Setup adds controllers, webhooks and indexes to the manager before it starts.
	Setup func(ctx context.Context, mgr ctrl.Manager, env Environment) error
}

// Conversions converts objects between the versions of their kinds, see package conversion.
type Conversions interface {
	apiversion.Registry
	// Webhook converts objects for API servers.
	Webhook() http.Handler
}

func (c Component) withDefaults() Component {
	if c.FeatureGates == nil {
		c.FeatureGates = feature.New()
	}
	c.LeaderElection = c.LeaderElection.withDefaults()
	return c
}

// LeaderElectionDurations configure leader election.
type LeaderElectionDurations struct {
	// Lease is how long other replicas wait before they take over from a leader that stopped renewing the lease.
	Lease time.Duration
	// RenewDeadline is how long a leader tries to renew the lease before it gives up. Shorter than Lease.
	RenewDeadline time.Duration
	// RetryPeriod is the interval between attempts to acquire or renew the lease. Shorter than RenewDeadline.
	RetryPeriod time.Duration
}

func (d LeaderElectionDurations) withDefaults() LeaderElectionDurations {
	or := func(d, standard time.Duration) time.Duration {
		if d == 0 {
			return standard
		}
		return d
	}
	return LeaderElectionDurations{
		Lease:         or(d.Lease, 15*time.Second),
		RenewDeadline: or(d.RenewDeadline, 10*time.Second),
		RetryPeriod:   or(d.RetryPeriod, 2*time.Second),
	}
}

// Environment is passed to the Setup of a component, with what the controller-runtime manager does not have.
type Environment struct {
	// WatchFilter is the value of the label cluster.x-k8s.io/watch-filter of objects to reconcile.
	// Empty: all. The cache has all objects, because related objects do not need the label.
	WatchFilter string
	// WatchNamespace is the only namespace that is watched. Empty: all.
	WatchNamespace string
	// Namespace is the namespace of the component's own objects: the detected namespace, or Component.Namespace.
	Namespace string
	// ExclusiveFor is how long, after an action as the leader, no other replica can have become the leader.
	ExclusiveFor time.Duration
	// CheckLeader returns an error if this process was the leader and may no longer be. Writes through the controller-runtime manager
	// are rejected anyway; it is for other writes, such as those to workload clusters.
	CheckLeader func() error
	// Watches reports whether the manager can watch the objects of a kind, which may be given as metadata. It cannot in an installation of
	// another version of Cluster API that lacks the definition or the permission, and logs that. A controller with such a watch would end
	// the manager, so it has to be left out. Required kinds need no check.
	Watches func(ctx context.Context, obj client.Object) (bool, error)
	// NewCache returns another cache of the manager's kinds, for what its cache does not have because of WatchNamespace. It does not start it.
	NewCache func(ctrl.Manager, cache.Options) (cache.Cache, error)
	// Boundary converts the kinds of Component.Conversions. Nil without any.
	Boundary *apiversion.Boundary
	// UserAgent is the user agent of the component, also for other API servers.
	UserAgent string
	// Dial connects to an address in or outside of the cluster, such as that of a Service.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// WrapWorkload is for remote.Options.Wrap. It may be nil.
	WrapWorkload transport.WrapperFunc
	// Getenv reads the component's environment, e.g. POD_NAME.
	Getenv func(string) string
}
