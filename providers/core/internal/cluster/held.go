package cluster

import (
	"context"

	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// held waits until runtime extensions have allowed the deletion. The topology controller calls them, and records the answer; without the
// record, extensions may still be answering. An extension that is removed later takes nothing back.
func (c *Controller) held(_ context.Context, s *scope) (step.Result, error) {
	if _, ok := s.Annotations[runtimev1.OkToDeleteAnnotation]; ok || !c.hooks || !s.Spec.Topology.IsDefined() {
		return step.Done(), nil
	}
	s.isHeld = true
	return step.Wait("runtime extensions to allow the deletion"), nil
}
