package operation

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/hold"
)

// Hold makes op the operation on a control plane, and is done when the controller of the control plane has answered.
func Hold(ctx context.Context, h hold.Holder, controlPlane client.ObjectKey, op fleetv1.Operation) (Outcome, error) {
	observed, err := h.Set(ctx, controlPlane, op)
	switch {
	case errors.Is(err, hold.ErrBusy):
		return Waits(fmt.Sprintf("the control plane: %v", err)), nil
	case apierrors.IsNotFound(err):
		return Outcome{}, Refusal(fmt.Sprintf("KubeadmControlPlane %s does not exist", controlPlane.Name))
	case err != nil:
		return Outcome{}, err
	case !observed:
		return Waits(fmt.Sprintf("the controller of KubeadmControlPlane %s to answer. If it does not set annotation %s, it is stopped, or of a "+
			"version that does not know operations: nothing was changed, and deleting this object takes the request back",
			controlPlane.Name, fleetv1.OperationObservedAnnotation)), nil
	}
	return Done("the controller of KubeadmControlPlane " + controlPlane.Name + " has answered"), nil
}
