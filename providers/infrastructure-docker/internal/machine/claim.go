package machine

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/identity"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// claim writes the finalizer and the identity. That write fails if the object in the cache is stale, so the object is up to date
// after it.
func (c *Controller) claim(_ context.Context, s *scope) (step.Result, error) {
	added := controllerutil.AddFinalizer(s.obj.Object, c.kinds.MachineFinalizer)
	s.current = added
	identity.Assign(s.obj.Object)
	return step.Checkpoint(), nil
}
