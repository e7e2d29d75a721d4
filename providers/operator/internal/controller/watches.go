package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	operatorv1 "sigs.k8s.io/cluster-api/api/operator/v1alpha2"
	"sigs.k8s.io/cluster-api/providers/operator/internal/providerobject"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// watches returns the watches of what providers consist of.
func (c *Controller) watches() []step.Watch {
	list := []step.Watch{step.Mapped(&appsv1.Deployment{}, c.ofComponent)}
	for _, kind := range CachedKinds() {
		list = append(list, step.Mapped(CachedMetadata(kind), c.ofComponent))
	}
	return list
}

// ofComponent returns the provider object of an object with a provider label.
func (c *Controller) ofComponent(ctx context.Context, component client.Object) []reconcile.Request {
	label := component.GetLabels()[clusterv1.ProviderNameLabel]
	return c.requests(ctx, func(p providerobject.Provider) bool { return p.Identity().ManifestLabel() == label })
}

// ofOther returns all objects of this kind when a provider object changes such that others may be affected.
func (c *Controller) ofOther(ctx context.Context, _ client.Object) []reconcile.Request {
	return c.requests(ctx, func(providerobject.Provider) bool { return true })
}

// requests returns the objects of this kind that are selected.
func (c *Controller) requests(ctx context.Context, selected func(providerobject.Provider) bool) []reconcile.Request {
	all, err := providerobject.List(ctx, c.Client)
	if err != nil {
		return nil // The cache has all kinds when controllers start.
	}
	var requests []reconcile.Request
	for _, p := range all {
		if p.Type == c.kind.Type && selected(p) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p)})
		}
	}
	return requests
}

// affectsOthers selects the events after which others may be installed, changed or deleted.
func affectsOthers() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after providerobject.Object) bool {
		return before.GetSpec().Paused != after.GetSpec().Paused || contractOf(before) != contractOf(after) ||
			isReady(before) != isReady(after) || hasStopped(before) != hasStopped(after)
	}))
}

// hasStopped reports whether the managers of a paused provider have stopped.
func hasStopped(o providerobject.Object) bool {
	c := condition.Get(o, operatorv1.ReadyCondition)
	return c != nil && c.Reason == operatorv1.PausedReason
}

func isReady(o providerobject.Object) bool { return condition.IsTrue(o, operatorv1.ReadyCondition) }

// contractOf returns the contract of the installed version, "" if none is installed.
func contractOf(o providerobject.Object) string { return ptr.Deref(o.GetStatus().Contract, "") }
