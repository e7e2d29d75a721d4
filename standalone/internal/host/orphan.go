package host

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Deployment that is deleted with the propagation policy Orphan leaves its Pods running: that is how a Deployment gets another
// selector without an interruption. Its instance becomes an orphan. It runs until a new Deployment of that name is ready and no
// Service needs it, until that Deployment is deleted, or until the Namespace is.

// orphaning notes Deployments that are deleted without their Pods. A reconcile may only see that they are gone.
func (h *host) orphaning() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if d := e.ObjectNew; d.GetDeletionTimestamp() != nil && slices.Contains(d.GetFinalizers(), metav1.FinalizerOrphanDependents) {
			h.orphan(client.ObjectKeyFromObject(d))
		}
		return true
	}}
}

// orphan makes the instances of a Deployment orphans.
func (h *host) orphan(key types.NamespacedName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, i := range h.instances[key] {
		if !i.orphaned {
			i.orphaned = true
			h.Logger.Info("The Deployment is deleted, but its component keeps running", "deployment", key)
		}
	}
}

// abandoned stops the instances of a Deployment that is deleted, unless it is deleted without them. Orphans of an earlier
// Deployment of that name end with it.
func (h *host) abandoned(ctx context.Context, key types.NamespacedName) error {
	ns := &corev1.Namespace{}
	err := h.client.Get(ctx, client.ObjectKey{Name: key.Namespace}, ns)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Namespace %s: %w", key.Namespace, err)
	}
	stays := !apierrors.IsNotFound(err) && ns.DeletionTimestamp.IsZero()
	h.mu.Lock()
	defer h.mu.Unlock()
	alive := h.alive(key)
	if stays && !slices.ContainsFunc(alive, func(i *instance) bool { return !i.orphaned }) {
		return nil
	}
	for _, i := range alive {
		h.stop(i)
	}
	return nil
}

// neighbors returns the Deployments whose orphans may depend on a Namespace, or on a Service in it.
func (h *host) neighbors(_ context.Context, o client.Object) []reconcile.Request {
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = o.GetName()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var requests []reconcile.Request
	for key, instances := range h.instances {
		if key.Namespace == namespace && slices.ContainsFunc(instances, func(i *instance) bool { return i.orphaned }) {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		}
	}
	return requests
}

// needed returns whether an instance is an orphan behind a Service that does not select the Pods of the new Deployment yet.
func (h *host) needed(ctx context.Context, d *appsv1.Deployment) (func(*instance) bool, error) {
	if len(h.neighbors(ctx, d)) == 0 {
		return func(*instance) bool { return false }, nil
	}
	var services corev1.ServiceList
	if err := h.client.List(ctx, &services, client.InNamespace(d.Namespace)); err != nil {
		return nil, fmt.Errorf("list the Services in namespace %s: %w", d.Namespace, err)
	}
	return func(i *instance) bool {
		return i.orphaned && slices.ContainsFunc(services.Items, func(s corev1.Service) bool {
			selector := labels.SelectorFromSet(s.Spec.Selector)
			return len(s.Spec.Selector) > 0 && selector.Matches(labels.Set(i.plan.pod.Labels)) &&
				!selector.Matches(labels.Set(d.Spec.Template.Labels))
		})
	}, nil
}
