package controlplane

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hasFinalizer stops if the finalizer has been removed.
func hasFinalizer(_ context.Context, s *scope) (step.Result, error) {
	if !controllerutil.ContainsFinalizer(s.KCP, controlplanev1.KubeadmControlPlaneFinalizer) {
		return step.Stop(), nil
	}
	return step.Done(), nil
}
