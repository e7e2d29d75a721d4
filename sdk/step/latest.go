package step

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// CacheBackstop is the deadline of waits for the cache. Usually, the event that it lacks comes first.
const CacheBackstop = 10 * time.Second

// Read is an object that a decision depends on: the reconciled one, or another one, such as its Cluster. See Clients.Latest.
type Read struct {
	cached, live client.Object
	same         func() bool
}

// Reread reads the current version of a cached object into live. same reports whether it permits the same decision, for example because
// its spec has not changed; nil: any version does.
func Reread[T client.Object](cached, live T, same func(live, cached T) bool) Read {
	return Read{cached: cached, live: live, same: func() bool { return same == nil || same(live, cached) }}
}

// Latest reads objects from the API server, and returns a result that waits (Result.Ends) if the cached copy of one of them is outdated.
// It precedes what cannot be undone, such as the creation and deletion of Machines: the cache may be a minute old, and another leader
// may have acted since. It costs a request for each object, up to the first that is outdated.
//
// An object is outdated if it does not exist, was replaced or is being deleted, if that, its pause or what its Read compares is
// different in the cache, or if it is a Cluster with spec.paused. That is the rule of the Runner: spec.paused of a Cluster pauses all
// objects of the Cluster, and the annotation only the object that has it. A Cluster that is moved away is paused, and its objects
// disappear one after another.
func (c Clients) Latest(ctx context.Context, reads ...Read) (Result, error) {
	outdated, err := Outdated(ctx, c.Live, reads...)
	if err != nil || outdated == "" {
		return Done(), err
	}
	return WaitAtMost(CacheBackstop, "the cache to show "+outdated), nil
}

// Outdated is Clients.Latest for code that does not wait: it returns what the cache does not show yet, such as "the latest Machine m";
// empty if it is up to date.
func Outdated(ctx context.Context, from client.Reader, reads ...Read) (string, error) {
	for _, r := range reads {
		latest, err := r.latest(ctx, from)
		if err != nil {
			return "", err
		}
		if !latest {
			return "the latest " + kindOf(r.cached) + " " + r.cached.GetName(), nil
		}
	}
	return "", nil
}

// latest reads the object, and reports whether the cached copy is up to date.
func (r Read) latest(ctx context.Context, from client.Reader) (bool, error) {
	err := from.Get(ctx, client.ObjectKeyFromObject(r.cached), r.live)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s %s from the API server: %w", kindOf(r.cached), r.cached.GetName(), err)
	}
	return r.live.GetUID() == r.cached.GetUID() &&
		r.live.GetDeletionTimestamp().IsZero() == r.cached.GetDeletionTimestamp().IsZero() &&
		hasPausedAnnotation(r.live) == hasPausedAnnotation(r.cached) && !isPausedCluster(r.live) && r.same(), nil
}

func hasPausedAnnotation(obj client.Object) bool {
	_, paused := obj.GetAnnotations()[clusterv1.PausedAnnotation]
	return paused
}

func isPausedCluster(obj client.Object) bool {
	cluster, ok := obj.(*clusterv1.Cluster)
	return ok && ptr.Deref(cluster.Spec.Paused, false)
}

// kindOf returns the kind of an object. Typed objects from caches and clients do not have it.
func kindOf(obj client.Object) string {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.GetKind()
	}
	return reflect.Indirect(reflect.ValueOf(obj)).Type().Name()
}
