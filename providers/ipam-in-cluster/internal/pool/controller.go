package pool

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controllers.
type Options struct {
	// Concurrency is the number of pools of each kind to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
	// Writer identifies this process in reservations. No other process may have the same.
	Writer string
}

// Controller reconciles pools of one kind.
type Controller[T poolref.Pool] struct {
	step.Clients
	kind   string
	fresh  func() T
	writer string

	mu sync.Mutex
	// complete are the pools of which the cache had all IPAddresses when this process last read those in the API server.
	complete map[types.UID]bool
	// recounts are when the new numbers of addresses of pools are due to be written.
	recounts map[types.UID]time.Time
}

// Setup adds the controllers of both kinds to a manager. The indexes of poolref must exist.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	namespaced := NewController(step.ClientsOf(mgr, "inclusterippool-controller", o.Filter), inclusterv1.InClusterIPPoolKind, o.Writer,
		func() *inclusterv1.InClusterIPPool { return &inclusterv1.InClusterIPPool{} })
	global := NewController(step.ClientsOf(mgr, "globalinclusterippool-controller", o.Filter), inclusterv1.GlobalInClusterIPPoolKind, o.Writer,
		func() *inclusterv1.GlobalInClusterIPPool { return &inclusterv1.GlobalInClusterIPPool{} })
	one, two := namespaced.Declared(), global.Declared()
	one.Concurrency, two.Concurrency = o.Concurrency, o.Concurrency
	return step.Add(ctx, mgr, namespaced.Clients, one, two)
}

// NewController returns a Controller of a kind of pools.
func NewController[T poolref.Pool](clients step.Clients, kind, writer string, fresh func() T) *Controller[T] {
	return &Controller[T]{
		Clients:  clients,
		kind:     kind,
		writer:   writer,
		fresh:    fresh,
		complete: map[types.UID]bool{},
		recounts: map[types.UID]time.Time{},
	}
}

// Declared returns the declaration of the controller.
func (c *Controller[T]) Declared() step.Controller[T, *scope[T]] {
	name := map[string]string{
		inclusterv1.InClusterIPPoolKind: "inclusterippool", inclusterv1.GlobalInClusterIPPoolKind: "globalinclusterippool",
	}
	return step.Controller[T, *scope[T]]{
		Name: name[c.kind], New: c.fresh,
		Watches: []step.Watch{
			step.Mapped(&ipamv1.IPAddressClaim{}, c.ofObject, claimChanges()),
			step.Mapped(&ipamv1.IPAddress{}, c.ofObject, predicate.Or(watch.Created(), watch.Deleted())),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused)),
		},
		Paused: ownership.PausedByCluster[T](c.Client),
		Scope:  c.scope,
		Steps: []step.Step[*scope[T]]{
			step.Do("protect", c.protect),
			step.Do("sweep", c.sweep),
			step.Do("allocate", c.allocate).Sets(clusterv1.ReadyV1Beta1Condition),
		},
		Deletion: []step.Step[*scope[T]]{
			step.Do("sweep", c.sweep),
			step.Do("drain", c.drain).Sets(clusterv1.ReadyV1Beta1Condition),
		},
	}
}

// scope is the state of one reconcile, shared by its steps.
type scope[T poolref.Pool] struct {
	pool T
	key  poolref.Key
	// addresses and claims are those of the pool in the cache. They must not be changed.
	addresses []ipamv1.IPAddress
	claims    []ipamv1.IPAddressClaim
	// known are the UIDs of claims.
	known map[types.UID]bool
}

func (c *Controller[T]) scope(ctx context.Context, pool T) (*scope[T], error) {
	s := &scope[T]{pool: pool, key: poolref.Key{Kind: c.kind, NamespacedName: client.ObjectKeyFromObject(pool)}, known: map[types.UID]bool{}}
	var err error
	if s.addresses, err = poolref.Addresses(ctx, c.Client, s.key); err != nil {
		return nil, err
	}
	if s.claims, err = poolref.Claims(ctx, c.Client, s.key); err != nil {
		return nil, err
	}
	for i := range s.claims {
		s.known[s.claims[i].UID] = true
	}
	return s, nil
}

// claimChanges selects the changes of claims that change what a pool allocates.
func claimChanges() predicate.Predicate {
	waits := func(c *ipamv1.IPAddressClaim) bool {
		return c.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(c, inclusterv1.ClaimFinalizer) && c.Status.AddressRef.Name == ""
	}
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *ipamv1.IPAddressClaim) bool {
		return !waits(before) && waits(after)
	}))
}

// ofObject returns the pool of a claim or an address, if it is of the controller's kind.
func (c *Controller[T]) ofObject(_ context.Context, obj client.Object) []reconcile.Request {
	key, ok := poolref.OfObject(obj)
	if !ok || key.Kind != c.kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key.NamespacedName}}
}

// ofCluster returns the pools that have the label of a Cluster.
func (c *Controller[T]) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	if c.kind == inclusterv1.GlobalInClusterIPPoolKind {
		return nil
	}
	return watch.Requests(ctx, c.Client, &inclusterv1.InClusterIPPoolList{}, ownership.InCluster(cluster.GetNamespace(), cluster.GetName()))
}

// exists reports whether a claim exists. One that the cache does not have, or no longer, is read from the API server.
func (c *Controller[T]) exists(ctx context.Context, s *scope[T], key types.NamespacedName, uid types.UID) (bool, error) {
	if s.known[uid] {
		return true, nil
	}
	claim := &ipamv1.IPAddressClaim{}
	if err := c.Live.Get(ctx, key, claim); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading IPAddressClaim %s: %w", key, err)
	}
	return claim.UID == uid, nil
}
