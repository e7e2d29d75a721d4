package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hostsv1 "sigs.k8s.io/cluster-api/examples/provider-hosts/api/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// finalizer adds the finalizer, before there is a claim to release.
func (c *Controller) finalizer(_ context.Context, s *scope) (step.Result, error) {
	controllerutil.AddFinalizer(s.obj, hostsv1.HostMachineFinalizer)
	return step.Checkpoint(), nil
}
