package backup

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of backups to make at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	Opener backupstore.Opener
	// Connect connects to the etcd of a Cluster.
	Connect func(ctx context.Context, cluster types.NamespacedName) (Etcd, error)
	// BytesPerSecond limits what is read from one etcd member.
	BytesPerSecond int
	// Timers decide when a backup is shown as running. Nil: those of the system.
	Timers clock.Clock
	// WorkDir is an existing directory for what verifications need in files.
	WorkDir string
}

// Etcd is the etcd of a Cluster, while it is in use.
type Etcd interface {
	// Choose returns the member to read a snapshot from.
	Choose(ctx context.Context) (member.Member, error)
	// Snapshot begins to read the database of a member.
	Snapshot(ctx context.Context, of member.Member) (Stream, error)
	Close()
}

// Stream is a snapshot that is being read.
type Stream interface {
	// Next returns the next chunk, and how many bytes follow it; io.EOF at the end.
	Next() (chunk []byte, remaining uint64, err error)
	Close()
}

// Controller reconciles EtcdBackups.
type Controller struct {
	step.Clients
	opener         backupstore.Opener
	connect        func(ctx context.Context, cluster types.NamespacedName) (Etcd, error)
	bytesPerSecond int
	workDir        string
	timers         clock.Clock
	// drill is a place for one restored etcd: its memory grows with the number of keys.
	drill chan struct{}
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := New(step.ClientsOf(mgr, "etcdbackup-controller", o.Filter), o)
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// New returns a Controller.
func New(clients step.Clients, o Options) *Controller {
	if o.Timers == nil {
		o.Timers = clock.RealClock{}
	}
	return &Controller{
		Clients: clients, timers: o.Timers, opener: o.Opener, connect: o.Connect, bytesPerSecond: o.BytesPerSecond, workDir: o.WorkDir,
		drill: make(chan struct{}, 1),
	}
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.EtcdBackup, *scope] {
	return step.Controller[*fleetv1.EtcdBackup, *scope]{
		Name: "etcdbackup",
		New:  func() *fleetv1.EtcdBackup { return &fleetv1.EtcdBackup{} },
		Watches: []step.Watch{
			// What a backup waits for that is not retried after a while anyway: its store.
			step.Mapped(&fleetv1.BackupStore{}, c.ofStore, predicate.Or(watch.Created(), watch.Updated(storeReady))),
		},
		Scope: func(_ context.Context, b *fleetv1.EtcdBackup) (*scope, error) { return &scope{backup: b}, nil },
		Steps: []step.Step[*scope]{
			step.Do("protect", protect),
			step.Do("store", c.store),
			step.Do("verify", c.verify),
		},
		Deletion: []step.Step[*scope]{step.Do("discard", c.discard)},
		Reports:  reports,
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	backup *fleetv1.EtcdBackup
	// failed is why the backup could not be made or deleted this time; unverified is why it could not be verified.
	failed, unverified error
}

// storeReady reports whether a store can be used now, and could not before.
func storeReady(before, after *fleetv1.BackupStore) bool {
	return !report.IsTrue(before, fleetv1.StoreReadyCondition) && report.IsTrue(after, fleetv1.StoreReadyCondition)
}

// ofStore returns the backups that wait for a store.
func (c *Controller) ofStore(ctx context.Context, obj client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &fleetv1.EtcdBackupList{}, func(b *fleetv1.EtcdBackup) bool {
		return b.Spec.StoreRef.Name == obj.GetName() && (!b.Ended() || !b.DeletionTimestamp.IsZero())
	}, client.InNamespace(obj.GetNamespace()))
}

// deadline returns when the backup has failed.
func deadline(b *fleetv1.EtcdBackup) time.Time {
	limit := defaultTimeout
	if b.Spec.TimeoutSeconds != nil {
		limit = time.Duration(*b.Spec.TimeoutSeconds) * time.Second
	}
	return b.CreationTimestamp.Add(limit)
}

// keyOf returns the key of a backup's archive.
func keyOf(b *fleetv1.EtcdBackup) string {
	return b.Namespace + "/" + b.Spec.ClusterName + "/" + b.Name + "-" + string(b.UID) + content.Suffix
}

// clusterKey returns the key of the Cluster of a backup.
func clusterKey(b *fleetv1.EtcdBackup) client.ObjectKey {
	return client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.ClusterName}
}
