package resourceset

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// release removes the finalizer.
func release(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.RemoveFinalizer(s.set, addonsv1.ClusterResourceSetFinalizer)
	return step.Done(), nil
}
