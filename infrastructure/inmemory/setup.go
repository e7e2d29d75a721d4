// Package inmemory is the in-memory infrastructure provider: workload clusters in a simulated cloud, whose
// API servers kubectl can talk to. It is the embedded default and the laboratory for scale.
package inmemory

import (
	"cmp"
	"context"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cluster"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/lab"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/machine"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/webhook"
	"sigs.k8s.io/cluster-api/internal/manager"
	"sigs.k8s.io/cluster-api/internal/watchfilter"
)

// flags are the component's own.
type flags struct {
	clusters, machines int
	dataDir            string
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.clusters, "cluster-concurrency", 10, "Number of InMemoryClusters to process at the same time")
	fs.IntVar(&f.machines, "machine-concurrency", 10, "Number of InMemoryMachines to process at the same time")
	fs.StringVar(&f.dataDir, "data-dir", "", "Directory to keep the content of workload clusters in, so that it outlives the process. Empty: it is kept in memory only")
}

// NewComponent is the in-memory manager.
func NewComponent() manager.Component {
	f := &flags{}
	return manager.Component{
		Name:             "capim-manager",
		Namespace:        "capim-system",
		LeaderElectionID: "inmemory-controller-leader-election-capi",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, inmemoryv1.AddToScheme},
		AddFlags:         f.register,
		Cache:            func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService:   "capim-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return setup(ctx, mgr, env, f)
		},
	}
}

func setup(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
	l := &lab.Lab{
		Cloud:  cloud.New(cloud.Options{Directory: f.dataDir}),
		Server: apiserver.New(apiserver.Options{}),
		Host:   cmp.Or(env.Getenv("POD_IP"), "127.0.0.1"),
	}
	closing := ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return l.Server.Close()
	})
	if err := mgr.Add(closing); err != nil {
		return err
	}
	filter := watchfilter.Predicate(env.WatchFilter)
	if err := cluster.Setup(ctx, mgr, cluster.Options{Concurrency: f.clusters, Filter: filter, Lab: l}); err != nil {
		return err
	}
	if err := machine.Setup(ctx, mgr, machine.Options{Concurrency: f.machines, Filter: filter, Lab: l}); err != nil {
		return err
	}
	return webhook.Register(mgr)
}
