package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// connectingBackstop bounds the wait for a first attempt to connect: if it fails, there is no event.
const connectingBackstop = 10 * time.Second

// rivalBackstop is the delay before checking again whether another Machine still has the Node: a change of one Machine does not
// trigger a reconcile of another.
const rivalBackstop = 30 * time.Second

// node finds the Node, copies its health, and syncs labels, annotations and taints to it.
func (c *Controller) node(ctx context.Context, s *scope) (step.Result, error) {
	const kind = clusterv1.MachineNodeHealthyV1Beta1Condition
	m := s.machine
	if m.Spec.ProviderID == "" {
		return step.Done().WithConditions(
			condition.False(kind, clusterv1.ConditionSeverityInfo, clusterv1.WaitingForNodeRefV1Beta1Reason, "")), nil
	}
	if !m.Status.NodeRef.IsDefined() && !s.isControlPlane() &&
		!condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		// A worker cannot join before the control plane is initialized: do not even connect.
		return provisioning("the control plane to be initialized"), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	s.found.node.err = err
	if remote.IsNotConnected(err) {
		return c.unreachable(ctx, m, err)
	}
	if err != nil {
		return step.Done(), err
	}
	found, err := findNode(ctx, workload, m.Spec.ProviderID)
	s.found.node = nodeFinding{looked: err == nil, err: err}
	if err != nil {
		step.Warning(ctx, "Failed to retrieve Node by ProviderID", "%v", err)
		return step.Done().WithConditions(condition.Unknown(kind, clusterv1.NodeInspectionFailedV1Beta1Reason,
			"Failed to get the Node for this Machine by ProviderID")), err
	}
	if found == nil {
		return nodeMissing(m)
	}
	return c.nodeFound(ctx, s, workload, found)
}

// provisioning waits for a prerequisite of the Node.
func provisioning(what string) step.Result {
	return step.Wait(what).Because(clusterv1.NodeProvisioningV1Beta1Reason).Severity(clusterv1.ConditionSeverityWarning)
}

// unreachable waits for a connection. A Machine without a Node is still being provisioned; a Machine with a Node keeps the
// health that was observed last. If the policy rejects the kubeconfig, the condition reports it, because a user must change
// something.
func (c *Controller) unreachable(ctx context.Context, m *clusterv1.Machine, err error) (step.Result, error) {
	const kind = clusterv1.MachineNodeHealthyV1Beta1Condition
	const warning, reason = clusterv1.ConditionSeverityWarning, clusterv1.NodeProvisioningV1Beta1Reason
	before, rejected := condition.Get(m, kind), remote.IsRejected(err)
	if rejected && (before == nil || before.Message != err.Error()) {
		step.Warning(ctx, "Failed to retrieve Node by ProviderID", "%v", err)
	}
	result := step.Wait(err.Error())
	if remote.IsConnecting(err) {
		result = step.WaitAtMost(connectingBackstop, err.Error())
	}
	switch {
	case rejected && !m.Status.NodeRef.IsDefined():
		return result.WithConditions(condition.False(kind, warning, reason, "%v", err)), nil
	case rejected:
		return result.WithConditions(condition.Unknown(kind, clusterv1.NodeInspectionFailedV1Beta1Reason, "%v", err)), nil
	case !m.Status.NodeRef.IsDefined():
		return result.WithConditions(condition.False(kind, warning, reason, "")), nil
	}
	return result, nil
}

func nodeMissing(m *clusterv1.Machine) (step.Result, error) {
	if !m.Status.NodeRef.IsDefined() {
		return provisioning("a Node with provider ID " + m.Spec.ProviderID), nil
	}
	return step.Done(), step.Terminal(&step.Error{
		Reason: clusterv1.NodeNotFoundV1Beta1Reason,
		Err: fmt.Errorf("Node %s with provider ID %s no longer exists: delete the Machine to replace it",
			m.Status.NodeRef.Name, m.Spec.ProviderID),
	})
}

func (c *Controller) nodeFound(ctx context.Context, s *scope, workload *remote.Cluster, node *corev1.Node) (step.Result, error) {
	m := s.machine
	if !m.Status.NodeRef.IsDefined() {
		rival, err := c.rival(ctx, m, node)
		if err != nil {
			return step.Done(), err
		}
		if rival != "" {
			return step.WaitAtMost(rivalBackstop, "Machine "+rival+", which has the same provider ID, to be deleted").WithConditions(
				condition.Unknown(clusterv1.MachineNodeHealthyV1Beta1Condition, clusterv1.NodeInspectionFailedV1Beta1Reason,
					"The Node with the provider ID of this Machine belongs to Machine %s", rival)), nil
		}
		if err = refer(m, node); err != nil {
			return step.Done(), step.Terminal(err)
		}
		step.Transition(ctx, "SuccessfulSetNodeRef", "%s", node.Name)
	}
	s.found.node.node = node
	info := node.Status.NodeInfo
	m.Status.NodeInfo = &info
	return step.Done().WithConditions(healthOf(node).condition()), c.syncNode(ctx, s, workload, node)
}

// findNode returns the Node with a provider ID from the cache; nil if there is none.
func findNode(ctx context.Context, workload client.Reader, id string) (*corev1.Node, error) {
	list := &corev1.NodeList{}
	if err := workload.List(ctx, list, client.MatchingFields{remote.NodeProviderID: id}); err != nil {
		return nil, fmt.Errorf("finding the Node with provider ID %s: %w", id, err)
	}
	switch len(list.Items) {
	case 0:
		return nil, nil
	case 1:
		return &list.Items[0], nil
	}
	return nil, step.Terminal(fmt.Errorf("Nodes %.253s and %.253s both have provider ID %s: delete the one whose machine no longer exists",
		list.Items[0].Name, list.Items[1].Name, id))
}
