package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// initializedBackstop is the deadline for the next look at the ConfigMap, which is not watched. kubeadm uploads it before it
// labels the Node, whose event triggers a reconcile; other bootstrap providers may use another order.
const initializedBackstop = 10 * time.Second

// Initialized detects that kubeadm init has completed. It records that permanently.
func Initialized(ctx context.Context, cp *snapshot.ControlPlane, workload Workload) (step.Result, error) {
	if cp.KCP.Status.Initialized {
		return step.Done(), nil
	}
	if workload == nil {
		return step.Wait("kubeadm init to complete").Because(controlplanev1.WaitingForKubeadmInitReason), nil
	}
	uploaded, err := workload.KubeadmConfigExists(ctx)
	if err == nil && uploaded {
		cp.KCP.Status.Initialized = true
		return step.Done(), nil
	}
	switch {
	case errors.Is(err, ErrBackoff):
		err = nil
	case err != nil:
		err = fmt.Errorf("reading kubeadm's configuration in the workload cluster: %w", err)
	}
	return step.WaitAtMost(initializedBackstop, "kubeadm init to complete").Because(controlplanev1.WaitingForKubeadmInitReason), err
}
