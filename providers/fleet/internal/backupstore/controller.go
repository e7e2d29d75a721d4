package backupstore

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of stores to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	Opener Opener
}

// Controller reconciles BackupStores.
type Controller struct {
	step.Clients
	opener Opener
}

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "backupstore-controller", o.Filter), opener: o.Opener}
	declared := c.declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*fleetv1.BackupStore, *scope] {
	return step.Controller[*fleetv1.BackupStore, *scope]{
		Name:  "backupstore",
		New:   func() *fleetv1.BackupStore { return &fleetv1.BackupStore{} },
		Scope: func(_ context.Context, s *fleetv1.BackupStore) (*scope, error) { return &scope{store: s}, nil },
		Watches: []step.Watch{
			// A store that is being deleted waits for them.
			step.Mapped(&fleetv1.EtcdBackup{}, c.ofBackup, predicate.Or(watch.Deleted(), watch.Updated(noLonger))),
		},
		Steps:    []step.Step[*scope]{step.Do("protect", protect), step.Do("import", c.importing), step.Do("check", c.check)},
		Deletion: []step.Step[*scope]{step.Do("release", c.release)},
		Reports:  reports,
		Observed: func(s *fleetv1.BackupStore, g int64) { s.Status.ObservedGeneration = g },
	}
}

// scope is the state of one reconcile.
type scope struct {
	store *fleetv1.BackupStore
	// failed is why archives cannot be kept in it; inUse says which backups hold its deletion.
	failed error
	inUse  string
	// imported is the result of an import; again: it must be repeated.
	imported *metav1.Condition
	again    bool
}
