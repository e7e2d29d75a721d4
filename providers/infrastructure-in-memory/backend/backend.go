// Package backend adds simulated machines to a manager: the simulated cloud, and the controllers of the objects that it simulates. The
// in-memory provider and the Docker provider use it, each for its own kinds.
//
// What does not belong here: the simulation, which is in internal, and what a manager does besides.
package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/apiserver"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cloud"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/cluster"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/kinds"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/lab"
	"sigs.k8s.io/cluster-api/providers/infrastructure-in-memory/internal/machine"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure a backend. All but Filter are required.
type Options struct {
	// Flags are the flags of the manager, and Env its environment.
	Flags *Flags
	Env   manager.Environment
	// Filter selects the objects of the manager.
	Filter watch.Filter
	// ClusterConcurrency and MachineConcurrency are how many objects are reconciled at the same time.
	ClusterConcurrency, MachineConcurrency int
	// Pools is whether MachinePools exist: their Machines use the pool's bootstrap data.
	Pools bool
}

// Addresses returns the addresses of the API servers of workload clusters, by the name of the cluster.
type Addresses func() map[types.NamespacedName]string

// InMemory adds the controllers of InMemoryClusters and InMemoryMachines to a manager.
func InMemory(ctx context.Context, mgr ctrl.Manager, o Options) (Addresses, error) {
	return setup(ctx, mgr, o, kinds.InMemory())
}

// Dev adds the controllers of DevClusters and DevMachines with backend inMemory to a manager.
func Dev(ctx context.Context, mgr ctrl.Manager, o Options) (Addresses, error) {
	return setup(ctx, mgr, o, kinds.Dev())
}

func setup(ctx context.Context, mgr ctrl.Manager, o Options, of kinds.Set) (Addresses, error) {
	observer, err := apiserver.NewMetrics(metrics.Registry)
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	ports, err := lab.ParsePorts(o.Flags.ports)
	if err != nil {
		return nil, err
	}
	l := &lab.Lab{
		Ports:  ports,
		Claims: cluster.Claims(mgr.GetClient(), of),
		Cloud:  cloud.New(cloud.Options{Directory: o.Flags.dataDir, Limit: o.Flags.storage}),
		Server: apiserver.New(apiserver.Options{Logger: mgr.GetLogger(), Observer: observer}),
		Host:   cmp.Or(o.Env.Getenv("POD_IP"), "127.0.0.1"),
	}
	closing := ctrlmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return l.Server.Close()
	})
	if err := mgr.Add(closing); err != nil {
		return nil, err
	}
	// Without a restriction to one namespace, all existing clusters are known. Another manager may share the directory.
	if o.Env.WatchNamespace == "" {
		if err := mgr.Add(sweep(l, mgr.GetAPIReader(), mgr.GetLogger(), of)); err != nil {
			return nil, err
		}
	}
	return l.Server.Addresses, errors.Join(
		cluster.Setup(ctx, mgr, cluster.Options{Concurrency: o.ClusterConcurrency, Filter: o.Filter, Lab: l, Kinds: of}),
		machine.Setup(ctx, mgr, machine.Options{Concurrency: o.MachineConcurrency, Filter: o.Filter, Lab: l, Kinds: of, Pools: o.Pools}),
	)
}

// sweep removes the data of deleted clusters when this process becomes the leader. An error only costs disk space until the
// next start.
func sweep(l *lab.Lab, live client.Reader, logger logr.Logger, of kinds.Set) ctrlmanager.RunnableFunc {
	return func(ctx context.Context) error {
		if err := l.Sweep(func() (map[types.UID]bool, error) { return existing(ctx, live, of) }); err != nil {
			logger.Error(err, "Cannot remove the data of deleted workload clusters")
		}
		return nil
	}
}

// existing returns the UIDs of all clusters.
func existing(ctx context.Context, live client.Reader, of kinds.Set) (map[types.UID]bool, error) {
	list, out := of.Clusters(), map[types.UID]bool{}
	if err := live.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", of.ClusterKind, err)
	}
	for _, c := range of.ClusterItems(list) {
		out[c.UID] = true
	}
	return out, nil
}
