package operation

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// Latest ends the reconcile if the copy of an operation in the cache is not the one in the API server, or if the operation has ended: no
// step is taken twice because of an old cache. It must come before the status is changed in memory. status returns the status of an
// operation.
func Latest[T client.Object](ctx context.Context, c step.Clients, r *Run, cached, live T, status func(T) any) (step.Result, error) {
	if Ended(*r.Phase) {
		return step.Stop(), nil
	}
	result, err := c.Latest(ctx, step.Reread(cached, live, func(live, cached T) bool {
		return live.GetGeneration() == cached.GetGeneration() && equality.Semantic.DeepEqual(status(live), status(cached))
	}))
	if err != nil || result.Ends() {
		r.Unknown()
		return result, err
	}
	if *r.Phase == "" {
		*r.Phase = fleetv1.OperationPhasePending
	}
	return result, err
}
