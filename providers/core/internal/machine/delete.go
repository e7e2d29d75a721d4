package machine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// nodeRetry is the delay between attempts to delete a Node.
const nodeRetry = 2 * time.Second

// cacheBackstop bounds the wait for the event of an object that is not in the cache yet.
const cacheBackstop = 5 * time.Second

// decide determines whether to drain the Node, see nodeWorkAllowed.
func (c *Controller) decide(ctx context.Context, s *scope) (step.Result, error) {
	allowed, err := c.nodeWorkAllowed(ctx, s)
	s.nodeWork = allowed
	return step.Done(), err
}

// deletionFailed reports whether a previous attempt to delete the Node failed.
func deletionFailed(m *clusterv1.Machine) bool {
	healthy := condition.Get(m, clusterv1.MachineNodeHealthyCondition)
	return healthy != nil && healthy.Reason == clusterv1.DeletionFailedReason
}

// preDrainHooks waits until all pre-drain hooks have been removed.
func (c *Controller) preDrainHooks(_ context.Context, s *scope) (step.Result, error) {
	return hooks(s.machine, clusterv1.PreDrainDeleteHookAnnotationPrefix), nil
}

// preTerminateHooks waits until all pre-terminate hooks have been removed, even if the Node is not drained.
func (c *Controller) preTerminateHooks(_ context.Context, s *scope) (step.Result, error) {
	result := hooks(s.machine, clusterv1.PreTerminateDeleteHookAnnotationPrefix)
	if !result.Ends() && !deletionFailed(s.machine) {
		condition.Set(s.machine, condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityInfo, clusterv1.DeletingReason, ""))
	}
	return result, nil
}

func hooks(m *clusterv1.Machine, prefix string) step.Result {
	if hook := hookOf(m, prefix); hook != "" {
		return step.Wait("annotation " + hook + " to be removed").Because(clusterv1.WaitingExternalHookReason)
	}
	return step.Done()
}

func hookOf(m *clusterv1.Machine, prefix string) string {
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if strings.HasPrefix(key, prefix) {
			return key
		}
	}
	return ""
}

// nodeWorkAllowed returns false if there is no Node, or if the Cluster, its control plane or the last control plane Machine is
// being deleted: then draining is pointless. A drain that was skipped cannot be made up for, so an object that is only missing
// in the cache is read from the API server.
func (c *Controller) nodeWorkAllowed(ctx context.Context, s *scope) (bool, error) {
	if s.machine.Status.NodeRef == nil {
		return false, nil
	}
	if s.cluster == nil {
		live := &clusterv1.Cluster{}
		if err := c.Live.Get(ctx, s.key(), live); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		s.cluster = live
	}
	if !s.cluster.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if ref := s.cluster.Spec.ControlPlaneRef; ref != nil {
		obj, err := c.follow.Reader.Get(ctx, ref, s.cluster.Namespace)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return false, err
		case !obj.GetDeletionTimestamp().IsZero():
			return false, nil
		default:
			if external, err := contract.ControlPlaneOf(obj).ExternallyManaged(); err != nil || external {
				return external, err
			}
		}
	}
	if found, err := hasControlPlaneMachine(ctx, c.Client, s); found || err != nil {
		return found, err
	}
	return hasControlPlaneMachine(ctx, c.Live, s)
}

// hasControlPlaneMachine reports whether the Cluster has a control plane Machine that is not being deleted.
func hasControlPlaneMachine(ctx context.Context, from client.Reader, s *scope) (bool, error) {
	list := &clusterv1.MachineList{}
	err := from.List(ctx, list, ownership.InCluster(s.cluster.Namespace, s.cluster.Name), client.HasLabels{clusterv1.MachineControlPlaneLabel})
	if err != nil {
		return false, fmt.Errorf("listing control plane Machines: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp.IsZero() {
			return true, nil
		}
	}
	return false, nil
}

// deleteInfrastructure deletes the infrastructure machine and waits until it is gone.
func (c *Controller) deleteInfrastructure(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, &s.machine.Spec.InfrastructureRef, s.machine, clusterv1.InfrastructureReadyCondition)
}

// deleteBootstrap deletes the bootstrap config and waits until it is gone.
func (c *Controller) deleteBootstrap(ctx context.Context, s *scope) (step.Result, error) {
	return c.follow.Delete(ctx, s.machine.Spec.Bootstrap.ConfigRef, s.machine, clusterv1.BootstrapReadyCondition)
}

// deleteNode deletes the Node. It retries until nodeDeletionTimeout has passed, forever if that is nil or zero.
func (c *Controller) deleteNode(ctx context.Context, s *scope) (step.Result, error) {
	m := s.machine
	allowed, err := c.nodeWorkAllowed(ctx, s)
	if err != nil || !allowed {
		return step.Done().KeepCondition(), err
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if err == nil {
		err = deleteOwnNode(ctx, workload, m)
	}
	if err == nil {
		return step.Done().KeepCondition(), nil
	}
	limit := m.Spec.NodeDeletionTimeout
	if limit != nil && limit.Duration != 0 && c.Clock.Now().After(m.DeletionTimestamp.Add(limit.Duration)) {
		step.Warning(ctx, "FailedDeleteNode", "Gave up deleting Node %s after %s: %v", m.Status.NodeRef.Name, limit.Duration, err)
		return step.Done().KeepCondition(), nil
	}
	if !deletionFailed(m) {
		step.Warning(ctx, "FailedDeleteNode", "error deleting Machine's node %q: %v", m.Status.NodeRef.Name, err)
	}
	return step.WaitAtMost(nodeRetry, fmt.Sprintf("Node %s to be deleted: %v", m.Status.NodeRef.Name, err)).WithConditions(
		condition.False(clusterv1.MachineNodeHealthyCondition, clusterv1.ConditionSeverityWarning, clusterv1.DeletionFailedReason, "")), nil
}

// finish removes the finalizer. It waits if the API server has an object of the Machine that is not in the cache yet: it may
// have been created right before the Machine was deleted.
func (c *Controller) finish(ctx context.Context, s *scope) (step.Result, error) {
	live := external.Reader{Client: c.Live, Versions: c.follow.Reader.Versions}
	for _, ref := range []*corev1.ObjectReference{&s.machine.Spec.InfrastructureRef, s.machine.Spec.Bootstrap.ConfigRef} {
		if ref == nil {
			continue
		}
		obj, err := live.Get(ctx, ref, s.machine.Namespace)
		if client.IgnoreNotFound(err) != nil {
			return step.Done(), err
		}
		if err == nil && !controlledByOther(obj, s.machine) {
			return step.WaitAtMost(cacheBackstop, ref.Kind+" "+ref.Name+" to appear in the cache and to be deleted"), nil
		}
	}
	controllerutil.RemoveFinalizer(s.machine, clusterv1.MachineFinalizer)
	return step.Done(), nil
}

// controlledByOther reports whether another Machine controls an object.
func controlledByOther(obj metav1.Object, m *clusterv1.Machine) bool {
	controller := metav1.GetControllerOf(obj)
	return controller != nil && controller.Kind == clusterv1.MachineKind && controller.UID != m.UID
}
