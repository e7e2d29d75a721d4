// Package fleet is the fleet provider: it changes many Clusters in stages, backs up the etcd of workload clusters, and restores and
// recovers their control planes. Rollouts and backups work beside other versions of Cluster API, too; operations on control planes need
// ours.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmanager "sigs.k8s.io/controller-runtime/pkg/manager"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/replacement"
	"sigs.k8s.io/cluster-api/providers/core/topologyplan"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backup"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/policy"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/recovery"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/restore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rollout"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/serve"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/workdir"
	"sigs.k8s.io/cluster-api/providers/fleet/rolloutplan"
	"sigs.k8s.io/cluster-api/sdk/conversion"
	"sigs.k8s.io/cluster-api/sdk/manager"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// flags are the flags of this component.
type flags struct {
	stores, policies, backups int
	restores, recoveries      int
	rotations, rollouts       int
	bytesPerSecond            int
	serveAddress, serveURL    string
	dataDir, workDir          string
	allowLocal                bool
	workloads                 remote.Flags
}

func (f *flags) register(fs *pflag.FlagSet) {
	fs.IntVar(&f.stores, "backupstore-concurrency", 5, "Number of BackupStores to process at the same time")
	fs.IntVar(&f.policies, "etcdbackuppolicy-concurrency", 5, "Number of EtcdBackupPolicies to process at the same time")
	fs.IntVar(&f.backups, "etcdbackup-concurrency", 10, "Number of EtcdBackups to make or verify at the same time")
	fs.IntVar(&f.restores, "controlplanerestore-concurrency", 5, "Number of ControlPlaneRestores to process at the same time")
	fs.IntVar(&f.recoveries, "controlplanerecovery-concurrency", 5, "Number of ControlPlaneRecoveries to process at the same time")
	fs.IntVar(&f.rotations, "certificateauthorityrotation-concurrency", 5,
		"Number of CertificateAuthorityRotations to process at the same time")
	fs.IntVar(&f.rollouts, "clusterrollout-concurrency", 5, "Number of ClusterRollouts to process at the same time")
	fs.IntVar(&f.bytesPerSecond, "backup-rate-limit", 50<<20, "Number of bytes per second that are read from one etcd member")
	fs.StringVar(&f.dataDir, "data-dir", "",
		"Directory below which the directories of BackupStores are. Empty: BackupStores cannot be directories")
	fs.StringVar(&f.workDir, "work-dir", "",
		"Directory for snapshots while they are verified or restored, unencrypted. Defaults to the directory for temporary files")
	fs.StringVar(&f.serveAddress, "serve-address", "",
		"Address where Machines download the data of etcd that is restored from a BackupStore with a directory, by HTTP, such as :9445. "+
			"The data is encrypted. Empty: such BackupStores cannot be restored")
	fs.StringVar(&f.serveURL, "serve-url", "", "URL at which Machines reach --serve-address. Empty: http:// with that address")
	fs.BoolVar(&f.allowLocal, "allow-local-stores", false,
		"Allow BackupStores whose endpoints have loopback, link-local or multicast addresses. Who may create BackupStores can then send "+
			"requests from the manager to services of its machine and of the cloud")
	f.workloads.AddTo(fs)
}

func (f *flags) validate() error {
	if f.bytesPerSecond <= 0 {
		return fmt.Errorf("invalid --backup-rate-limit %d: must be positive", f.bytesPerSecond)
	}
	if f.serveURL != "" && (f.serveAddress == "" || !strings.HasPrefix(f.serveURL, "http://") && !strings.HasPrefix(f.serveURL, "https://")) {
		return fmt.Errorf("invalid --serve-url %q: must begin with http:// or https://, and needs --serve-address", f.serveURL)
	}
	return f.workloads.Validate()
}

// NewComponent returns the fleet provider as a component of a manager.
func NewComponent() manager.Component {
	f := &flags{}
	return manager.Component{
		Name: "capi-fleet-controller",
		Purpose: "The fleet provider: changes many Clusters in stages, backs up the etcd of workload clusters, restores and recovers " +
			"their control planes, and rotates their certificate authorities.",
		Namespace:        "capi-fleet-system",
		LeaderElectionID: "controller-leader-election-capi-fleet",
		AddToScheme: []func(*runtime.Scheme) error{
			clusterv1.AddToScheme, controlplanev1.AddToScheme, bootstrapv1.AddToScheme, fleetv1.AddToScheme,
		},
		AddConverted: conversion.AddToScheme,
		Conversions:  conversion.New(nil),
		AddFlags:     f.register,
		Validate:     f.validate,
		Cache:        func(o *cache.Options) { o.DefaultTransform = cache.TransformStripManagedFields() },
		Setup: func(ctx context.Context, mgr ctrl.Manager, env manager.Environment) error {
			return setup(ctx, mgr, env, f)
		},
	}
}

// setup adds the controllers.
func setup(ctx context.Context, mgr ctrl.Manager, env manager.Environment, f *flags) error {
	p, err := f.workloads.Policy(mgr.GetConfig())
	if err != nil {
		return err
	}
	work, err := workdir.New(f.workDir)
	if err != nil {
		return err
	}
	// The manager keeps the lock of the directory, without which another process would remove it.
	if err := mgr.Add(crmanager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return work.Remove()
	})); err != nil {
		return err
	}
	filter := watch.Filter(env.WatchFilter)
	opener := backupstore.Opener{Stores: mgr.GetClient(), Secrets: mgr.GetAPIReader(), DataDir: f.dataDir, AllowLocal: f.allowLocal}
	connector := &member.Connector{Management: mgr.GetAPIReader(), Clock: clock.RealClock{}, Remote: remote.Options{
		Scheme: clientgoscheme.Scheme, UserAgent: env.UserAgent, Policy: p, Management: mgr.GetConfig(), CheckLeader: env.CheckLeader,
		QPS: f.workloads.QPS, Burst: f.workloads.Burst, Wrap: env.WrapWorkload,
	}}
	server, err := serveData(ctx, mgr, opener, f)
	if err != nil {
		return err
	}
	return errors.Join(
		backupstore.Setup(ctx, mgr, backupstore.Options{Concurrency: f.stores, Filter: filter, Opener: opener}),
		policy.Setup(ctx, mgr, policy.Options{Concurrency: f.policies, Filter: filter}),
		recovery.Setup(ctx, mgr, recovery.Options{Concurrency: f.recoveries, Filter: filter,
			Connect: connect(connector, func(e *member.Etcd) recovery.Workload { return e })}),
		backup.Setup(ctx, mgr, backup.Options{
			Concurrency: f.backups, Filter: filter, Opener: opener,
			Connect:        connect(connector, func(e *member.Etcd) backup.Etcd { return members{e} }),
			BytesPerSecond: f.bytesPerSecond, WorkDir: work.Path,
		}),
		restore.Setup(ctx, mgr, restore.Options{
			Concurrency: f.restores, Filter: filter, Opener: opener, WorkDir: work.Path, Server: server,
			Connect: connect(connector, func(e *member.Etcd) restore.ControlPlane { return e }),
		}),
		rotation.Setup(ctx, mgr, rotation.Options{
			Concurrency: f.rotations, Filter: filter,
			Connect: func(ctx context.Context, cluster types.NamespacedName) (rotation.Workload, error) {
				return connector.Dial(ctx, cluster)
			},
		}),
		rollout.Setup(ctx, mgr, rollout.Options{Concurrency: f.rollouts, Filter: filter, Planner: &rolloutplan.Planner{
			Live: env.Boundary.CachedClient(uncached{mgr.GetClient(), mgr.GetAPIReader()}), Dial: env.Dial, UserAgent: env.UserAgent,
			ControlPlanes: map[schema.GroupKind]topologyplan.Outdated{replacement.Kind(): replacement.Reasons},
		}}),
	)
}

// uncached is a client that reads from the API server: plans read each object once, of kinds that this manager does not watch.
type uncached struct {
	client.Client
	live client.Reader
}

// Get implements client.Reader.
func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.live.Get(ctx, key, obj, opts...)
}

// List implements client.Reader.
func (u uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.live.List(ctx, list, opts...)
}

// serveData adds the server of data of restores, if it has an address.
func serveData(ctx context.Context, mgr ctrl.Manager, opener backupstore.Opener, f *flags) (restore.Server, error) {
	if f.serveAddress == "" {
		return nil, nil
	}
	s := &serve.Server{Restores: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Opener: opener}
	if err := s.Listen(ctx, f.serveAddress, f.serveURL); err != nil {
		return nil, err
	}
	return s, mgr.Add(s)
}

// connect returns how a controller connects to the etcd of Clusters: as is what it uses of that.
func connect[T any](c *member.Connector, as func(*member.Etcd) T) func(context.Context, types.NamespacedName) (T, error) {
	return func(ctx context.Context, cluster types.NamespacedName) (T, error) {
		e, err := c.Connect(ctx, cluster)
		if err != nil {
			var none T
			return none, err
		}
		return as(e), nil
	}
}

// members are the members of a Cluster's etcd.
type members struct{ *member.Etcd }

// Snapshot implements backup.Etcd.
func (m members) Snapshot(ctx context.Context, of member.Member) (backup.Stream, error) {
	return m.Etcd.Snapshot(ctx, of)
}
