// Package incluster is the in-cluster IPAM provider: it allocates the addresses of IPAddressClaims from pools that are objects of the
// management cluster.
package incluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/claim"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/orphan"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/pool"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct{ pools, claims int }

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.pools, "pool-concurrency", 10, "Number of InClusterIPPools, and of GlobalInClusterIPPools, to process at the same time")
	fs.IntVar(&f.claims, "ipaddressclaim-concurrency", 10, "Number of IPAddressClaims to process at the same time")
}

// NewComponent returns the in-cluster IPAM provider as a component of a manager.
func NewComponent() manager.Component {
	f := &flags{}
	return manager.Component{
		Name:             "capi-ipam-in-cluster-controller",
		Purpose:          "The in-cluster IPAM provider: allocates IP addresses from InClusterIPPools and GlobalInClusterIPPools.",
		Namespace:        "capi-ipam-in-cluster-system",
		LeaderElectionID: "controller-leader-election-capi-ipam-in-cluster",
		AddToScheme: []func(*runtime.Scheme) error{
			clusterv1.AddToScheme, ipamv1.AddToScheme, inclusterv1.AddToScheme,
		},
		AddConverted:   conversion.AddToScheme,
		Conversions:    conversion.New(nil),
		AddFlags:       f.register,
		Cache:          func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService: "capi-ipam-in-cluster-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return errors.Join(controllers(ctx, mgr, env, f), webhook.Register(mgr))
		},
	}
}

// controllers adds the controllers, and the indexes that they and the webhooks use.
func controllers(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
	for _, i := range poolref.Indexes() {
		if err := mgr.GetFieldIndexer().IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return fmt.Errorf("indexing %T by %s: %w", i.Object, i.Field, err)
		}
	}
	filter := watch.Filter(env.WatchFilter)
	return errors.Join(
		pool.Setup(ctx, mgr, pool.Options{Concurrency: f.pools, Filter: filter, Writer: uuid.NewString()}),
		claim.Setup(ctx, mgr, claim.Options{Concurrency: f.claims, Filter: filter}),
		orphan.Setup(ctx, mgr, filter),
	)
}
