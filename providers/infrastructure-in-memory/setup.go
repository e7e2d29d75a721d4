// Package inmemory is the in-memory infrastructure provider: workload clusters in a simulated cloud, with API servers for
// kubectl and other clients. It is the default of the standalone program, and used for scale tests.
package inmemory

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/backend"
	pool "sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/machinepool"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/webhook"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/feature"
	"sigs.k8s.io/cluster-api/sdk/machinepool"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	clusters, machines, pools int
	debugAddress              string
	backend                   backend.Flags
}

// ports is the default range of ports of workload API servers.
const ports = "20000-24000"

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.clusters, "cluster-concurrency", 10, "Number of InMemoryClusters to process at the same time")
	fs.IntVar(&f.machines, "machine-concurrency", 10, "Number of InMemoryMachines to process at the same time")
	fs.IntVar(&f.pools, "machinepool-concurrency", 10, "Number of InMemoryMachinePools to process at the same time")
	fs.StringVar(&f.debugAddress, "debug-address", "127.0.0.1:19000",
		"Address of an HTTP server with /listeners, which lists the addresses of workload API servers without authentication. Empty: disabled")
	f.backend.AddTo(fs, ports)
}

func (f *flags) validate() error { return f.backend.Validate() }

// NewComponent returns the in-memory manager.
func NewComponent() manager.Component {
	f := &flags{}
	gates := feature.New(feature.MachinePool)
	return manager.Component{
		Name:             "capim-manager",
		Purpose:          "The in-memory infrastructure provider: simulates the machines of clusters, with API servers and etcd.",
		Namespace:        "capim-system",
		LeaderElectionID: "inmemory-controller-leader-election-capi",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, inmemoryv1.AddToScheme},
		AddConverted:     conversion.AddToScheme,
		Conversions:      conversion.New(nil),
		FeatureGates:     gates,
		AddFlags:         f.register,
		Validate:         f.validate,
		Cache:            func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService:   "capim-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return setup(ctx, mgr, env, f, gates.Enabled(feature.MachinePool))
		},
	}
}

func setup(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags, pools bool) error {
	filter := watch.Filter(env.WatchFilter)
	var err error
	if pools {
		if pools, err = env.Watches(ctx, &clusterv1.MachinePool{}); err != nil {
			return err
		}
	}
	addresses, err := backend.InMemory(ctx, mgr, backend.Options{
		Flags: &f.backend, Env: env, Filter: filter, ClusterConcurrency: f.clusters, MachineConcurrency: f.machines, Pools: pools,
	})
	if err != nil {
		return err
	}
	if f.debugAddress != "" {
		if err := mgr.Add(debugServer{address: f.debugAddress, handler: listeners(addresses), logger: mgr.GetLogger()}); err != nil {
			return err
		}
	}
	return errors.Join(
		setupPools(ctx, mgr, env, pools, machinepool.Options{Concurrency: f.pools, Filter: filter}),
		webhook.Register(mgr),
	)
}

// setupPools adds the controller of InMemoryMachinePools, if there are MachinePools.
func setupPools(ctx context.Context, mgr ctrl.Manager, env manager.Environment, enabled bool, o machinepool.Options) error {
	if !enabled {
		return nil
	}
	if exist, err := env.Watches(ctx, &inmemoryv1.InMemoryMachinePool{}); err != nil || !exist {
		return err
	}
	return machinepool.Setup(ctx, mgr, pool.Provider(), o)
}

// debugServer is an HTTP server for debugging. If its address is in use, the manager runs without it.
type debugServer struct {
	address string
	handler http.Handler
	logger  logr.Logger
}

// Start implements manager.Runnable.
func (d debugServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.address)
	if err != nil {
		d.logger.Error(err, "Not serving /listeners: set another --debug-address, or an empty one")
		return nil
	}
	server := &http.Server{Handler: d.handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // Serve returns then.
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listeners returns a handler that lists the URLs of workload API servers by namespace and name.
func listeners(addresses backend.Addresses) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /listeners", func(w http.ResponseWriter, _ *http.Request) {
		urls := map[string]string{}
		for cluster, address := range addresses() {
			urls[cluster.String()] = "https://" + address
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(urls) // An error means that the client is gone.
	})
	return mux
}
