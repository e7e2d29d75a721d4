package controlplane

import (
	"context"

	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/scale"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// plan decides on the next change of the number of Machines. The step scale makes it.
func plan(_ context.Context, s *scope) (result step.Result, err error) {
	s.action, result = scale.Plan(s.membership(), s.connection.Reason)
	return result, nil
}
