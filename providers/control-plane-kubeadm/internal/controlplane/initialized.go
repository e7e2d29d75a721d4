package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/connection"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// initializedBackstop is the interval at which the ConfigMap is read, which is not watched. kubeadm uploads it before it
// labels the Node, whose event triggers a reconcile; other bootstrap providers may use another order.
const initializedBackstop = 10 * time.Second

// initialized detects that kubeadm init has completed. It records that permanently.
func initialized(ctx context.Context, s *scope) (step.Result, error) {
	if ptr.Deref(s.KCP.Status.Initialization.ControlPlaneInitialized, false) {
		return step.Done(), nil
	}
	if s.connection.Workload == nil {
		return step.Wait("kubeadm init to complete").Because(controlplanev1.WaitingForKubeadmInitV1Beta1Reason), nil
	}
	uploaded, err := s.connection.Workload.KubeadmConfigExists(ctx)
	if err == nil && uploaded {
		s.KCP.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
		return step.Done(), nil
	}
	switch {
	case errors.Is(err, connection.ErrBackoff):
		err = nil
	case err != nil:
		err = fmt.Errorf("reading kubeadm's configuration in the workload cluster: %w", err)
	}
	return step.WaitAtMost(initializedBackstop, "kubeadm init to complete").Because(controlplanev1.WaitingForKubeadmInitV1Beta1Reason), err
}
