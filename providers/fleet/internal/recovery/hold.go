package recovery

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// hold takes the control plane from its controller. When that has answered, the members are asked again: until now, Machines may have been
// created or deleted, and the quorum may have returned.
func (c *Controller) hold(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(holdStep) {
		return step.Done(), nil
	}
	now := c.Clock.Now()
	observed, err := c.holder.Set(ctx, s.controlPlane, s.operation())
	switch {
	case errors.Is(err, hold.ErrBusy):
		return s.waits(holdStep, now, "%v", err)
	case apierrors.IsNotFound(err):
		s.said = refused("KubeadmControlPlane %s does not exist", s.controlPlane.Name)
		return c.refuse(ctx, s)
	case err != nil:
		return step.Result{}, err
	case observed:
		s.complete(holdStep, now, "KubeadmControlPlane %s is held", s.controlPlane.Name)
		s.recovery.Status.InspectionTime = nil
		s.said = verdict{reason: fleetv1.OperationWaitingReason, message: "Asking the etcd members again"}
		return step.WaitAtMost(poll, "another round of questions to the members"), nil
	}
	message := fmt.Sprintf("the controller of KubeadmControlPlane %s to answer", s.controlPlane.Name)
	if now.Sub(s.begin(holdStep, now).StartTime.Time) > observedTimeout {
		message += fmt.Sprintf(". It has not set annotation %s: it is stopped, or of a version that does not support operations. "+
			"Nothing has been changed, and deleting this object takes the request back", fleetv1.OperationObservedAnnotation)
	}
	return s.waits(holdStep, now, "%s", message)
}
