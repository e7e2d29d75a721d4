// Package inmemory is the in-memory infrastructure provider: workload clusters in a simulated cloud, with API servers for
// kubectl and other clients. It is the default of the standalone program, and used for scale tests.
package inmemory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud/store"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cluster"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/machine"
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
	dataDir                   string
	debugAddress              string
	ports                     string
	storage                   int64
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.clusters, "cluster-concurrency", 10, "Number of InMemoryClusters to process at the same time")
	fs.IntVar(&f.machines, "machine-concurrency", 10, "Number of InMemoryMachines to process at the same time")
	fs.IntVar(&f.pools, "machinepool-concurrency", 10, "Number of InMemoryMachinePools to process at the same time")
	fs.StringVar(&f.debugAddress, "debug-address", "127.0.0.1:19000",
		"Address of an HTTP server with /listeners, which lists the addresses of workload API servers without authentication. Empty: disabled")
	fs.StringVar(&f.ports, "api-server-ports", lab.DefaultPorts().String(),
		"Range of ports for the API servers of workload clusters. They only listen on the address in POD_IP, or on 127.0.0.1 if it is not set")
	fs.Int64Var(&f.storage, "workload-storage-limit", store.DefaultLimit,
		"Maximum size of all objects of one workload cluster, in bytes, with an overhead of 1024 bytes per object")
	fs.StringVar(&f.dataDir, "data-dir", "",
		"Directory for the content of workload clusters, which then survives restarts. Empty: in memory only")
}

func (f *flags) validate() error {
	if _, err := lab.ParsePorts(f.ports); err != nil {
		return fmt.Errorf("--api-server-ports: %w", err)
	}
	if f.storage <= 0 {
		return fmt.Errorf("--workload-storage-limit is %d: it must be positive", f.storage)
	}
	return nil
}

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
	observer, err := apiserver.NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	ports, err := lab.ParsePorts(f.ports)
	if err != nil {
		return err
	}
	l := &lab.Lab{
		Ports:  ports,
		Claims: cluster.Claims(mgr.GetClient()),
		Cloud:  cloud.New(cloud.Options{Directory: f.dataDir, Limit: f.storage}),
		Server: apiserver.New(apiserver.Options{Logger: mgr.GetLogger(), Observer: observer}),
		Host:   cmp.Or(env.Getenv("POD_IP"), "127.0.0.1"),
	}
	closing := ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return l.Server.Close()
	})
	if err := mgr.Add(closing); err != nil {
		return err
	}
	if f.debugAddress != "" {
		if err := mgr.Add(debugServer{address: f.debugAddress, handler: listeners(l.Server), logger: mgr.GetLogger()}); err != nil {
			return err
		}
	}
	// Without a restriction to one namespace, all existing clusters are known. Another manager may share the directory.
	if env.WatchNamespace == "" {
		if err := mgr.Add(sweep(l, mgr.GetAPIReader(), mgr.GetLogger())); err != nil {
			return err
		}
	}
	filter := watch.Filter(env.WatchFilter)
	return errors.Join(
		cluster.Setup(ctx, mgr, cluster.Options{Concurrency: f.clusters, Filter: filter, Lab: l}),
		machine.Setup(ctx, mgr, machine.Options{Concurrency: f.machines, Filter: filter, Lab: l, Pools: pools}),
		setupPools(ctx, mgr, pools, machinepool.Options{Concurrency: f.pools, Filter: filter}),
		webhook.Register(mgr),
	)
}

// setupPools adds the controller of InMemoryMachinePools, if there are MachinePools.
func setupPools(ctx context.Context, mgr ctrl.Manager, enabled bool, o machinepool.Options) error {
	if !enabled {
		return nil
	}
	return machinepool.Setup(ctx, mgr, pool.Provider(), o)
}

// sweep removes the data of deleted clusters when this process becomes the leader. An error only costs disk space until the
// next start.
func sweep(l *lab.Lab, live client.Reader, logger logr.Logger) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		err := l.Sweep(func() (map[types.UID]bool, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(inmemoryv1.GroupVersion.WithKind("InMemoryClusterList"))
			if err := live.List(ctx, list); err != nil {
				return nil, fmt.Errorf("listing InMemoryClusters: %w", err)
			}
			existing := map[types.UID]bool{}
			for i := range list.Items {
				existing[list.Items[i].UID] = true
			}
			return existing, nil
		})
		if err != nil {
			logger.Error(err, "Cannot remove the data of deleted workload clusters")
		}
		return nil
	}
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
func listeners(server *apiserver.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /listeners", func(w http.ResponseWriter, _ *http.Request) {
		urls := map[string]string{}
		for cluster, address := range server.Addresses() {
			urls[cluster.String()] = "https://" + address
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(urls) // An error means that the client is gone.
	})
	return mux
}
