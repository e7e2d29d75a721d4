package orphan

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Controller reconciles IPAddresses that are being deleted.
type Controller struct{ step.Clients }

// Setup adds the controller to a manager, for the IPAddresses that filter selects.
func Setup(ctx context.Context, mgr ctrl.Manager, filter watch.Filter) error {
	c := &Controller{step.ClientsOf(mgr, "ipaddress-controller", filter)}
	return step.Add(ctx, mgr, c.Clients, c.declared())
}

// declared returns the declaration of the controller.
func (c *Controller) declared() step.Controller[*ipamv1.IPAddress, *ipamv1.IPAddress] {
	return step.Controller[*ipamv1.IPAddress, *ipamv1.IPAddress]{
		Name:   "ipaddress",
		New:    func() *ipamv1.IPAddress { return &ipamv1.IPAddress{} },
		Events: predicate.NewPredicateFuncs(mayBeOrphan),
		Watches: []step.Watch{
			// An IPAddress has the name of its claim.
			step.Handled(&ipamv1.IPAddressClaim{}, &handler.EnqueueRequestForObject{}, watch.Deleted()),
		},
		Scope: step.Self[*ipamv1.IPAddress],
		Deletion: []step.Step[*ipamv1.IPAddress]{
			step.When(func(a *ipamv1.IPAddress) bool { return mayBeOrphan(a) }, step.Do("release", c.release)),
		},
	}
}

// mayBeOrphan reports whether only the finalizer of this provider may keep an IPAddress. In a release, the finalizer is removed first.
func mayBeOrphan(obj client.Object) bool {
	a, ok := obj.(*ipamv1.IPAddress)
	if !ok || a.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(a, inclusterv1.AddressFinalizer) {
		return false
	}
	_, ours := poolref.OfObject(a)
	return ours
}
