// Package watchfilter says which events of watched objects a controller gets: those of objects that are its manager's, by
// the label cluster.x-k8s.io/watch-filter, and those that matter to it.
package watchfilter

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// Predicate lets objects through whose watch-filter label has this value; the empty value lets all through.
func Predicate(value string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return value == "" || obj.GetLabels()[clusterv1.WatchLabel] == value
	})
}
