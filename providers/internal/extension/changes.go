package extension

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/watch"
)

// Changes selects the events of ExtensionConfigs after which a call can have another result: for controllers that watch them to repeat
// calls that failed.
func Changes() predicate.Predicate {
	return predicate.Or(watch.Created(), watch.Deleted(), watch.Updated(func(before, after *runtimev1.ExtensionConfig) bool {
		const discovered = runtimev1.RuntimeExtensionDiscoveredV1Beta1Condition
		return before.Generation != after.Generation || pending(before) != pending(after) ||
			condition.IsTrue(before, discovered) != condition.IsTrue(after, discovered) ||
			cacheable(before) != cacheable(after) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
			!equality.Semantic.DeepEqual(before.Status.Handlers, after.Status.Handlers)
	}))
}

func cacheable(config *runtimev1.ExtensionConfig) bool {
	_, ok := config.Annotations[runtimev1.CacheableAnnotation]
	return ok
}
