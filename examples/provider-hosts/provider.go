// Package hosts is an infrastructure provider for machines that exist already, which it reaches over SSH.
package hosts

import (
	"context"
	"errors"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/cluster"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/host"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/machine"
	"sigs.k8s.io/cluster-api/examples/provider-hosts/internal/webhook"
	"sigs.k8s.io/cluster-api/provider/manager"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// NewComponent is the provider's manager.
func NewComponent() manager.Component {
	var concurrency int
	return manager.Component{
		Name:             "hosts-manager",
		Purpose:          "The hosts infrastructure provider: gives machines that exist already to clusters, over SSH.",
		Namespace:        "hosts-system",
		LeaderElectionID: "hosts-controller-leader-election",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, hostsv1.AddToScheme},
		AddFlags: func(fs *pflag.FlagSet) {
			fs.IntVar(&concurrency, "machine-concurrency", 10, "Number of HostMachines to process at the same time. One that does not answer takes up to a minute.")
		},
		Cache:          func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService: "hosts-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			filter := watch.Filter(env.WatchFilter)
			return errors.Join(host.Setup(ctx, mgr, filter), cluster.Setup(ctx, mgr, filter),
				machine.Setup(ctx, mgr, filter, concurrency), webhook.Register(mgr))
		},
	}
}
