// Package orphan releases IPAddresses that have neither a claim nor a pool: a process that was suspended may create one after the claim
// was released and the pool was deleted. The garbage collector deletes it, because its owners do not exist, but the finalizer keeps it.
//
// IPAddresses whose claim or pool exists do not belong here: their controllers release them.
package orphan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	inclusterv1 "sigs.k8s.io/cluster-api/api/ipam/incluster/v1alpha2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta1"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/address"
	"sigs.k8s.io/cluster-api/providers/ipam-in-cluster/internal/poolref"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Controller reconciles IPAddresses.
type Controller struct{ step.Outside }

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager) error {
	c := &Controller{step.OutsideOf(mgr, "ipaddress-controller", "")}
	return ctrl.NewControllerManagedBy(mgr).Named("ipaddress").
		For(&ipamv1.IPAddress{}, builder.WithPredicates(predicate.NewPredicateFuncs(mayBeOrphan))).
		// An IPAddress has the name of its claim.
		Watches(&ipamv1.IPAddressClaim{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(watch.Deleted())).
		Complete(c)
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

// Reconcile removes the finalizer of an IPAddress that is being deleted, if its claim does not exist in the API server.
func (c *Controller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	a := &ipamv1.IPAddress{}
	if err := c.Client.Get(ctx, request.NamespacedName, a); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !mayBeOrphan(a) {
		return ctrl.Result{}, nil
	}
	claim, key := &ipamv1.IPAddressClaim{}, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.ClaimRef.Name}
	switch err := c.Live.Get(ctx, key, claim); {
	case err == nil && address.Belongs(a, claim):
		return ctrl.Result{}, nil // Its deletion releases the address.
	case err != nil && !apierrors.IsNotFound(err):
		return ctrl.Result{}, fmt.Errorf("reading IPAddressClaim %s: %w", key, err)
	}
	_, err := address.Release(ctx, c.Outside, a)
	return ctrl.Result{}, err
}
