package claim

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Options configure the controller.
type Options struct {
	// Concurrency is the number of claims to process at the same time.
	Concurrency int
	// Filter selects the objects that this manager reconciles.
	Filter watch.Filter
}

// Controller reconciles IPAddressClaims.
type Controller struct{ step.Clients }

// Setup adds the controller to a manager. The indexes of poolref must exist.
func Setup(ctx context.Context, mgr ctrl.Manager, o Options) error {
	c := &Controller{Clients: step.ClientsOf(mgr, "ipaddressclaim-controller", o.Filter)}
	declared := c.Declared()
	declared.Concurrency = o.Concurrency
	return step.Add(ctx, mgr, c.Clients, declared)
}

// Declared returns the declaration of the controller.
func (c *Controller) Declared() step.Controller[*ipamv1.IPAddressClaim, *scope] {
	return step.Controller[*ipamv1.IPAddressClaim, *scope]{
		Name:   "ipaddressclaim",
		New:    func() *ipamv1.IPAddressClaim { return &ipamv1.IPAddressClaim{} },
		Events: predicate.And(predicate.NewPredicateFuncs(isOurs), changes()),
		Watches: []step.Watch{
			step.Mapped(&ipamv1.IPAddress{}, named),
			step.Handled(&inclusterv1.InClusterIPPool{}, c.poolEvents(inclusterv1.InClusterIPPoolKind)),
			step.Handled(&inclusterv1.GlobalInClusterIPPool{}, c.poolEvents(inclusterv1.GlobalInClusterIPPoolKind)),
			step.Mapped(&clusterv1.Cluster{}, c.ofCluster, watch.Cluster(watch.Paused)),
		},
		Paused: c.paused,
		Scope:  c.scope,
		Steps: []step.Step[*scope]{
			step.When((*scope).isOurs,
				step.Do("pool", pool),
				step.Do("adopt", adopt),
				step.Do("address", c.address).Sets(clusterv1.ReadyV1Beta1Condition),
			),
		},
		Deletion: []step.Step[*scope]{step.When((*scope).isOurs, step.Do("release", c.release))},
		Reports:  reports,
		Progress: &step.Progress{},
	}
}

// paused reports whether the Cluster of a claim is paused: that of spec.clusterName, or else of its label or owner.
func (c *Controller) paused(ctx context.Context, claim *ipamv1.IPAddressClaim) (bool, error) {
	if claim.Spec.ClusterName == "" {
		return ownership.PausedByCluster[*ipamv1.IPAddressClaim](c.Client)(ctx, claim)
	}
	return ownership.PausedByClusterName(c.Client, address.ClusterName)(ctx, claim)
}

// scope is the state of one reconcile, shared by its steps.
type scope struct {
	claim *ipamv1.IPAddressClaim
	key   poolref.Key
	// pool is nil if it does not exist, or if it is one of another provider.
	pool poolref.Pool
}

func (c *Controller) scope(ctx context.Context, claim *ipamv1.IPAddressClaim) (*scope, error) {
	s := &scope{claim: claim}
	key, ok := poolref.OfObject(claim)
	if !ok {
		return s, nil
	}
	s.key = key
	var err error
	s.pool, err = poolref.Get(ctx, c.Client, key)
	return s, err
}

func (s *scope) isOurs() bool { return s.key.Kind != "" }

func isOurs(obj client.Object) bool {
	_, ok := poolref.OfObject(obj)
	return ok
}

// named returns the claim with the name of an IPAddress, whether or not it was created for the claim.
func named(_ context.Context, obj client.Object) []reconcile.Request {
	if !isOurs(obj) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// ofCluster returns the claims of a Cluster.
func (c *Controller) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return watch.RequestsFor(ctx, c.Client, &ipamv1.IPAddressClaimList{}, func(claim *ipamv1.IPAddressClaim) bool {
		return isOurs(claim) && address.ClusterName(claim) == cluster.GetName()
	}, client.InNamespace(cluster.GetNamespace()))
}
