package manager

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"sigs.k8s.io/cluster-api/provider/feature"
)

// Component is one of our controller managers. It is used for one run: what its functions share (the variables of its
// flags, its feature gates) is made together with it, by a constructor such as core.Component().
type Component struct {
	// Name is the name of program and image, e.g. "cluster-api-controller". It is also the user agent.
	Name string
	// Purpose is a sentence for help: what the manager does.
	Purpose string
	// Namespace is where the component is installed by default, e.g. "capi-system". It is used for the leader
	// election Lease when the namespace cannot be detected.
	Namespace string
	// LeaderElectionID is the name of the Lease.
	LeaderElectionID string
	// LeaderElection are the defaults of the --leader-elect-* flags. What is zero is 15s, 10s and 2s.
	LeaderElection LeaderElectionDurations

	// AddToScheme registers the kinds the component reads or writes. Those of core/v1 are registered already.
	AddToScheme []func(*runtime.Scheme) error
	// FeatureGates are set from --feature-gates. Nil: the flag is accepted and nothing depends on it.
	FeatureGates *feature.Gates
	// AddFlags registers the component's own flags. May be nil.
	AddFlags func(*pflag.FlagSet)
	// Validate tells what is wrong with the component's own flags; the error has to name the flag. May be nil.
	Validate func() error

	// Cache changes how the manager caches objects. May be nil. Without it, all objects are cached as they are,
	// except Secrets (only those with the label cluster.x-k8s.io/cluster-name). Components that do not need
	// managedFields save memory with o.DefaultTransform = cache.TransformStripManagedFields().
	Cache func(o *cache.Options)

	// WebhookService is the Service that leads to the component's webhook server, e.g. "capi-webhook-service". Its
	// certificate is in the Secret "<WebhookService>-cert". Empty: the component has no webhooks.
	WebhookService string
	// Definitions selects the CustomResourceDefinitions for which the webhook server converts versions. Nil: none.
	Definitions labels.Selector

	// Setup adds controllers, webhooks and indexes to a manager that is not started yet.
	Setup func(ctx context.Context, mgr ctrl.Manager, env Environment) error
}

func (c Component) withDefaults() Component {
	if c.FeatureGates == nil {
		c.FeatureGates = feature.New()
	}
	c.LeaderElection = c.LeaderElection.withDefaults()
	return c
}

// LeaderElectionDurations tune leader election.
type LeaderElectionDurations struct {
	// Lease is how long others wait before they take over from a leader who stopped renewing.
	Lease time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up. Shorter than Lease.
	RenewDeadline time.Duration
	// RetryPeriod is how long everybody waits between tries. Shorter than RenewDeadline.
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

// Environment is what a component learns about the run it is part of, beyond what the manager tells.
type Environment struct {
	// WatchFilter is the value that the label cluster.x-k8s.io/watch-filter of reconciled objects has to have.
	// Empty: all objects are reconciled. The cache is not restricted by it, because related objects need no label.
	WatchFilter string
	// WatchNamespace is the only namespace that is watched. Empty: all.
	WatchNamespace string
	// Namespace is where the component's own objects are: the detected namespace, or the component's default.
	Namespace string
	// ExclusiveFor is for how long after it acted as the leader nobody else can have become it.
	ExclusiveFor time.Duration
	// UserAgent is how the component introduces itself to API servers, other ones included.
	UserAgent string
	// Getenv reads the component's environment, e.g. POD_NAME.
	Getenv func(string) string
}
