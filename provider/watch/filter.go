// Package watch says which objects are a manager's own, by the label cluster.x-k8s.io/watch-filter, which events of watched
// objects matter to a controller, and which objects an event of another one concerns.
package watch

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Filter is the value that the label has to have on objects that a manager reconciles, as its flag --watch-filter says.
// The empty Filter selects all objects.
type Filter string

// Selects reports whether an object is one that the manager reconciles.
func (f Filter) Selects(obj client.Object) bool {
	return f == "" || obj.GetLabels()[clusterv1.WatchLabel] == string(f)
}

// Predicate lets the events of selected objects through. It saves reconciles; what decides is the Runner, which asks the
// Filter whatever event led to an object.
func (f Filter) Predicate() predicate.Predicate { return predicate.NewPredicateFuncs(f.Selects) }
