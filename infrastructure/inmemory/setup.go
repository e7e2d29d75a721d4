// Package inmemory is the in-memory infrastructure provider: workload clusters in a simulated cloud, whose
// API servers kubectl can talk to. It is the embedded default and the laboratory for scale.
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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	inmemoryv1 "sigs.k8s.io/cluster-api/api/infrastructure/inmemory/v1alpha1"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/apiserver"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cloud"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/cluster"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/lab"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/machine"
	"sigs.k8s.io/cluster-api/infrastructure/inmemory/internal/webhook"
	"sigs.k8s.io/cluster-api/provider/manager"
	"sigs.k8s.io/cluster-api/provider/watch"
)

// flags are the component's own.
type flags struct {
	clusters, machines int
	dataDir            string
	debugAddress       string
	ports              string
	storage            int64
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.clusters, "cluster-concurrency", 10, "Number of InMemoryClusters to process at the same time")
	fs.IntVar(&f.machines, "machine-concurrency", 10, "Number of InMemoryMachines to process at the same time")
	fs.StringVar(&f.debugAddress, "debug-address", "127.0.0.1:19000", "Address to serve /listeners at, which tells anybody who asks where the API servers of workload clusters are. Empty: it is not served")
	fs.StringVar(&f.ports, "api-server-ports", lab.DefaultPorts().String(), "Range of ports that API servers of workload clusters listen at. They listen on the address in POD_IP, else on 127.0.0.1, and nowhere else")
	fs.Int64Var(&f.storage, "workload-storage-limit", cloud.DefaultLimit, "Bytes that the objects of one workload cluster may take; each counts 1024 bytes more than it has")
	fs.StringVar(&f.dataDir, "data-dir", "", "Directory to keep the content of workload clusters in, so that it outlives the process. Empty: it is kept in memory only")
}

func (f *flags) validate() error {
	if _, err := lab.ParsePorts(f.ports); err != nil {
		return fmt.Errorf("--api-server-ports: %w", err)
	}
	if f.storage <= 0 {
		return fmt.Errorf("--workload-storage-limit is %d: it has to be above 0", f.storage)
	}
	return nil
}

// NewComponent is the in-memory manager.
func NewComponent() manager.Component {
	f := &flags{}
	return manager.Component{
		Name:             "capim-manager",
		Purpose:          "The in-memory infrastructure provider: simulates the machines of clusters, with API servers and etcd that answer.",
		Namespace:        "capim-system",
		LeaderElectionID: "inmemory-controller-leader-election-capi",
		AddToScheme:      []func(*runtime.Scheme) error{clusterv1.AddToScheme, inmemoryv1.AddToScheme},
		AddFlags:         f.register,
		Validate:         f.validate,
		Cache:            func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		WebhookService:   "capim-webhook-service",
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return setup(ctx, mgr, env, f)
		},
	}
}

func setup(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
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
	// Only who sees all namespaces knows which clusters are gone. Others may share the directory.
	if env.WatchNamespace == "" {
		if err := mgr.Add(sweeping(l, mgr.GetAPIReader(), mgr.GetLogger())); err != nil {
			return err
		}
	}
	filter := watch.Filter(env.WatchFilter)
	if err := cluster.Setup(ctx, mgr, cluster.Options{Concurrency: f.clusters, Filter: filter, Lab: l}); err != nil {
		return err
	}
	if err := machine.Setup(ctx, mgr, machine.Options{Concurrency: f.machines, Filter: filter, Lab: l}); err != nil {
		return err
	}
	return webhook.Register(mgr)
}

// sweeping removes, once this process leads, what was kept of clusters that are gone. Failing to costs disk space only,
// until the next start.
func sweeping(l *lab.Lab, live client.Reader, logger logr.Logger) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		err := l.Sweep(func() (map[types.UID]bool, error) {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(inmemoryv1.GroupVersion.WithKind("InMemoryClusterList"))
			if err := live.List(ctx, list); err != nil {
				return nil, fmt.Errorf("listing InMemoryClusters: %w", err)
			}
			living := map[types.UID]bool{}
			for i := range list.Items {
				living[list.Items[i].UID] = true
			}
			return living, nil
		})
		if err != nil {
			logger.Error(err, "Cannot remove what was kept of workload clusters that are gone")
		}
		return nil
	}
}

// debugServer serves for debugging. That its address is taken is no reason to do without the manager.
type debugServer struct {
	address string
	handler http.Handler
	logger  logr.Logger
}

// Start implements manager.Runnable.
func (d debugServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.address)
	if err != nil {
		d.logger.Error(err, "Not serving /listeners: give another --debug-address, or none")
		return nil
	}
	server := &http.Server{Handler: d.handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() }) // Which is how it ends.
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// listeners tells where each workload cluster's API server is, by namespace and name.
func listeners(server *apiserver.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /listeners", func(w http.ResponseWriter, _ *http.Request) {
		urls := map[string]string{}
		for cluster, address := range server.Addresses() {
			urls[cluster.String()] = "https://" + address
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(urls) // Who asked has gone if this fails.
	})
	return mux
}
