// Package watch selects the objects of a manager, by the label cluster.x-k8s.io/watch-filter, and the events that are relevant for a
// controller, and maps events to the objects to reconcile.
package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Filter is the value of that label on the objects that a manager reconciles, as set by --watch-filter. The empty Filter selects
// all objects.
type Filter string

// Selects reports whether the manager reconciles an object.
func (f Filter) Selects(obj client.Object) bool {
	return f == "" || obj.GetLabels()[clusterv1.WatchLabel] == string(f)
}

// Predicate selects the events of selected objects. It saves reconciles of other objects; a step.Runner ignores them anyway.
func (f Filter) Predicate() predicate.Predicate { return predicate.NewPredicateFuncs(f.Selects) }
