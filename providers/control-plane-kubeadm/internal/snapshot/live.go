package snapshot

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/conversion"
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

// Decision checks everything that decisions about Machines are based on: the control plane, its Cluster, and its Machines.
func (r LiveReader) Decision(ctx context.Context, cp *ControlPlane) (Stale, error) {
	if stale, err := r.ControlPlane(ctx, cp); stale != "" || err != nil {
		return stale, err
	}
	if stale, err := r.outdated(ctx, step.Reread(cp.Cluster, &clusterv1.Cluster{}, nil)); stale != "" || err != nil {
		return stale, err
	}
	return r.Machines(ctx, cp)
}

// ControlPlane checks the KubeadmControlPlane.
func (r LiveReader) ControlPlane(ctx context.Context, cp *ControlPlane) (Stale, error) {
	return r.outdated(ctx,
		step.Reread(cp.KCP, &controlplanev1.KubeadmControlPlane{}, func(live, cached *controlplanev1.KubeadmControlPlane) bool {
			return (cp.Initialized() || !ptr.Deref(live.Status.Initialization.ControlPlaneInitialized, false)) &&
				equality.Semantic.DeepEqual(live.Spec, cached.Spec) &&
				live.Annotations[conversion.OlderVersionAnnotation] == cached.Annotations[conversion.OlderVersionAnnotation] &&
				live.Annotations[fleetv1.OperationAnnotation] == cached.Annotations[fleetv1.OperationAnnotation] &&
				live.Annotations[fleetv1.OperatedAnnotation] == cached.Annotations[fleetv1.OperatedAnnotation] &&
				live.Annotations[controlplanev1.RemediationInProgressAnnotation] == cp.Remediation
		}))
}

// Uninitialized checks that the cluster has not been initialized.
func (r LiveReader) Uninitialized(ctx context.Context, cp *ControlPlane) (Stale, error) {
	uninitialized := func(live, _ *clusterv1.Cluster) bool {
		return !condition.IsTrue(live, clusterv1.ControlPlaneInitializedV1Beta1Condition)
	}
	if stale, err := r.outdated(ctx, step.Reread(cp.Cluster, &clusterv1.Cluster{}, uninitialized)); stale != "" || err != nil {
		return stale, err
	}
	return r.ControlPlane(ctx, cp)
}

func (r LiveReader) outdated(ctx context.Context, read step.Read) (Stale, error) {
	outdated, err := step.Outdated(ctx, r.Reader, read)
	return Stale(outdated), err
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
