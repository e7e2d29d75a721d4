package machine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/external"
	"sigs.k8s.io/cluster-api/sdk/ownership"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// decide determines whether to drain the Node, see nodeWorkAllowed. It looks for a Node that has joined since the last reconcile, but
// does not wait for a connection: until there is one, nothing is known that could be drained.
func (c *Controller) decide(ctx context.Context, s *scope) (step.Result, error) {
	allowed, err := c.nodeWorkAllowed(ctx, s)
	if err != nil || !allowed {
		return step.Done(), err
	}
	if workload, err := c.workloads.Get(ctx, s.key()); err == nil {
		if err := c.findLate(ctx, workload, s.machine); err != nil {
			ctrl.LoggerFrom(ctx).V(4).Info("Cannot look for the Node", "reason", err.Error()) // The step delete-node reports it.
		}
	}
	s.nodeWork = s.machine.Status.NodeRef.IsDefined()
	if s.nodeWork {
		s.pastDrain, err = c.isPastDrain(ctx, s)
	}
	return step.Done(), err
}

// isPastDrain reports whether the Node is not drained any further, even if that did not complete: the wait for pre-terminate hooks has
// begun, or someone deletes the infrastructure machine, or has. A skipped drain cannot be repeated, so an infrastructure machine that is
// only missing in the cache is read from the API server.
func (c *Controller) isPastDrain(ctx context.Context, s *scope) (bool, error) {
	if _, begun := began(s.machine, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition); begun {
		return true, nil
	}
	ref := &s.machine.Spec.InfrastructureRef
	obj, err := c.object(ctx, s, ref)
	if err == nil && obj == nil {
		obj, err = external.Reader{Client: c.Live, Versions: c.follow.Reader.Versions}.Get(ctx, ref, s.machine.Namespace)
	}
	gone, err := contract.KindGone(ctx, c.Live, err)
	switch {
	case gone || apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	return !obj.GetDeletionTimestamp().IsZero(), nil
}

// findLate sets status.nodeRef of a Machine that was deleted before that was done, if its Node has joined.
func (c *Controller) findLate(ctx context.Context, workload client.Reader, m *clusterv1.Machine) error {
	if m.Status.NodeRef.IsDefined() {
		return nil
	}
	node, err := findNode(ctx, workload, m.Spec.ProviderID)
	if err != nil || node == nil {
		return err
	}
	rival, err := c.rival(ctx, m, node)
	if err != nil || rival != "" {
		return err // The Node belongs to the rival.
	}
	return refer(m, node)
}

// refer sets status.nodeRef.
func refer(m *clusterv1.Machine, node *corev1.Node) error {
	ref, err := bounds.NodeReference(node)
	if err == nil {
		m.Status.NodeRef = clusterv1.MachineNodeReference{Name: ref.Name}
	}
	return err
}

// mayHaveNode reports whether a Machine has a Node, or one may have joined. The infrastructure machine may have a provider ID that was
// not copied yet; it is copied now, because the infrastructure machine is deleted before the Node.
func (c *Controller) mayHaveNode(ctx context.Context, s *scope) (bool, error) {
	m := s.machine
	if m.Status.NodeRef.IsDefined() || m.Spec.ProviderID != "" {
		return true, nil
	}
	obj, err := c.object(ctx, s, &m.Spec.InfrastructureRef)
	if err != nil || obj == nil || !metav1.IsControlledBy(obj, m) {
		_, err = contract.KindGone(ctx, c.Live, client.IgnoreNotFound(err))
		return false, err
	}
	id, err := contract.InfrastructureMachineOf(contract.Object{Unstructured: obj}).ProviderID()
	if err != nil || id == "" || len(id) > bounds.ProviderID {
		return false, nil // What the infrastructure machine says must not prevent its deletion.
	}
	m.Spec.ProviderID = id
	return true, nil
}

// nodeWorkAllowed returns false if there can be no Node, or if the Cluster, its control plane or the last control plane Machine is
// being deleted: then draining is pointless. A skipped drain cannot be repeated, so an object that is only missing
// in the cache is read from the API server.
func (c *Controller) nodeWorkAllowed(ctx context.Context, s *scope) (bool, error) {
	if may, err := c.mayHaveNode(ctx, s); !may || err != nil {
		return false, err
	}
	if s.cluster == nil {
		live := &clusterv1.Cluster{}
		if err := c.Live.Get(ctx, s.key(), live); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		s.cluster = live
	}
	joined := s.machine.Status.NodeRef.IsDefined()
	if !s.cluster.DeletionTimestamp.IsZero() || !joined && !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return false, nil
	}
	if ref := &s.cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		obj, err := c.follow.Reader.Object(ctx, ref, s.cluster.Namespace)
		gone, err := contract.KindGone(ctx, c.Live, err)
		switch {
		case gone || apierrors.IsNotFound(err):
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
