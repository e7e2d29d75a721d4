package snapshot

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// StaleRetry is the delay before a reconcile is retried because the cache is stale. Normally the event that the cache has not
// received yet triggers it sooner.
const StaleRetry = time.Second

// Stale describes what the cache does not show yet, such as "that Machine m is gone". It is empty if the cache is up to date.
type Stale string

// Wait returns a result that waits for the cache.
func (s Stale) Wait() step.Result { return step.WaitAtMost(StaleRetry, "the cache to show "+string(s)) }

// Err returns a stale error (step.IsStale), nil if the cache is up to date.
func (s Stale) Err() error {
	if s == "" {
		return nil
	}
	return step.Stale("the cache does not show %s yet", string(s))
}

// LiveReader checks a snapshot against the API server, past the cache, before decisions that depend on it: the cache may be a
// minute old, and another leader may have acted.
type LiveReader struct{ client.Reader }

// Decision checks everything that decisions about Machines are based on: the control plane and its Machines.
func (r LiveReader) Decision(ctx context.Context, cp *ControlPlane) (Stale, error) {
	if stale, err := r.ControlPlane(ctx, cp); stale != "" || err != nil {
		return stale, err
	}
	return r.Machines(ctx, cp)
}

// ControlPlane checks the KubeadmControlPlane.
func (r LiveReader) ControlPlane(ctx context.Context, cp *ControlPlane) (Stale, error) {
	live := &controlplanev1.KubeadmControlPlane{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(cp.KCP), live); err != nil {
		if apierrors.IsNotFound(err) {
			return "that the control plane is gone", nil
		}
		return "", fmt.Errorf("reading the control plane: %w", err)
	}
	_, paused := live.Annotations[clusterv1.PausedAnnotation]
	switch {
	case live.UID != cp.KCP.UID:
		return "that the control plane was deleted and created again", nil
	case live.DeletionTimestamp != nil:
		return "that the control plane is being deleted", nil
	case paused:
		return "that the control plane is paused", nil
	case live.Status.Initialized && !cp.Initialized():
		return "that the cluster is initialized", nil
	case !equality.Semantic.DeepEqual(live.Spec, cp.KCP.Spec):
		return "the control plane's spec", nil
	case live.Annotations[controlplanev1.RemediationInProgressAnnotation] != cp.Remediation:
		return "which remediation is in progress", nil
	}
	return "", nil
}

// Uninitialized checks that the cluster has not been initialized.
func (r LiveReader) Uninitialized(ctx context.Context, cp *ControlPlane) (Stale, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Get(ctx, cp.Key(), cluster); err != nil {
		if apierrors.IsNotFound(err) {
			return "that the Cluster is gone", nil
		}
		return "", fmt.Errorf("reading Cluster %s: %w", cp.Key(), err)
	}
	switch {
	case cluster.UID != cp.Cluster.UID:
		return "that the Cluster was deleted and created again", nil
	case cluster.DeletionTimestamp != nil:
		return "that the Cluster is being deleted", nil
	case condition.IsTrue(cluster, clusterv1.ControlPlaneInitializedCondition):
		return "that the cluster is initialized", nil
	}
	return r.ControlPlane(ctx, cp)
}

// Initialization checks that the cluster has not been initialized, and that no other Machine is about to initialize it.
func (r LiveReader) Initialization(ctx context.Context, cp *ControlPlane) (Stale, error) {
	if stale, err := r.Uninitialized(ctx, cp); stale != "" || err != nil {
		return stale, err
	}
	return r.Machines(ctx, cp)
}

// Machines checks which Machines the control plane controls or could adopt, and which of them are being deleted.
func (r LiveReader) Machines(ctx context.Context, cp *ControlPlane) (Stale, error) {
	all, err := r.ListMachines(ctx, cp)
	if err != nil {
		return "", err
	}
	missing := map[types.UID]string{}
	for _, m := range cp.Machines {
		missing[m.UID] = m.Name
	}
	for i := range all {
		m := &all[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			continue
		}
		controller, known := metav1.GetControllerOf(m), cp.Named(m.Name)
		switch {
		case controller != nil && controller.UID != cp.KCP.UID:
		case known == nil || known.UID != m.UID:
			return Stale("Machine " + m.Name), nil
		case known.Deleting() != (m.DeletionTimestamp != nil):
			return Stale("that Machine " + m.Name + " is being deleted"), nil
		default:
			delete(missing, m.UID)
		}
	}
	for _, name := range missing {
		return Stale("that Machine " + name + " is gone"), nil
	}
	return "", nil
}

// ListMachines lists all Machines of the Cluster, including workers.
func (r LiveReader) ListMachines(ctx context.Context, cp *ControlPlane) ([]clusterv1.Machine, error) {
	live := &clusterv1.MachineList{}
	if err := r.List(ctx, live, ownership.InCluster(cp.KCP.Namespace, cp.Cluster.Name)); err != nil {
		return nil, fmt.Errorf("listing the Machines of Cluster %s: %w", cp.Key(), err)
	}
	return live.Items, nil
}
