package machinepool

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/bounds"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// connectingBackstop bounds the wait for a first attempt to connect: if it fails, there is no event.
	connectingBackstop = 10 * time.Second
	// rivalBackstop is the delay before checking again whether a Node still belongs to another Machine or MachinePool, whose changes
	// do not trigger a reconcile.
	rivalBackstop = 30 * time.Second
	// maxListed is the maximum number of Nodes in the message of an event.
	maxListed = 10
)

// nodes finds the Nodes of the pool, counts them, and deletes those that left it.
func (c *Controller) nodes(ctx context.Context, s *scope) (step.Result, error) {
	p := s.pool
	if len(p.Spec.ProviderIDList) == 0 && len(p.Status.NodeRefs) == 0 {
		return c.count(s, membership{}), nil // There is nothing to look for: do not even connect.
	}
	if len(p.Status.NodeRefs) == 0 && !condition.IsTrue(s.cluster, clusterv1.ControlPlaneInitializedV1Beta1Condition) {
		return waitForNodes("the control plane to be initialized"), nil
	}
	workload, err := c.workloads.Get(ctx, s.key())
	if remote.IsNotConnected(err) {
		return unreachable(p, err), nil
	}
	if err != nil {
		return step.Done(), err
	}
	found, err := c.members(ctx, s, workload)
	if err != nil {
		step.Warning(ctx, "FailedSetNodeRef", "%v", err)
		return step.Done(), err
	}
	left, retireErr := c.retire(ctx, s, workload, found)
	setReferences(ctx, p, append(found.references, left...))
	reportConflict(ctx, p, found.conflict)
	result := c.count(s, found)
	if retireErr != nil {
		return result, retireErr
	}
	return result, c.syncNodes(ctx, s, workload, found)
}

// waitForNodes waits for a prerequisite of the Nodes.
func waitForNodes(what string) step.Result {
	return step.Wait(what).Because(clusterv1.WaitingForReplicasReadyV1Beta1Reason)
}

// unreachable waits for a connection. The counters and the condition that were observed last are kept, unless the policy rejects
// the kubeconfig: then the condition reports it, because a user must change something.
func unreachable(p *clusterv1.MachinePool, err error) step.Result {
	result := waitForNodes(err.Error())
	if remote.IsConnecting(err) {
		result = step.WaitAtMost(connectingBackstop, err.Error()).Because(clusterv1.WaitingForReplicasReadyV1Beta1Reason)
	}
	if condition.Has(p, clusterv1.ReplicasReadyV1Beta1Condition) && !remote.IsRejected(err) {
		return result.KeepCondition()
	}
	return result
}

// membership are the Nodes of a pool.
type membership struct {
	// nodes are in the order of the provider IDs, and references refer to them.
	nodes      []*corev1.Node
	references []corev1.ObjectReference
	// unmanaged are the nodes that have no Machine, which would annotate them.
	unmanaged []*corev1.Node
	// conflict describes why a Node with a provider ID of the pool is not one of them; empty if there is none.
	conflict string
}

// members finds the Nodes of the pool by provider ID.
func (c *Controller) members(ctx context.Context, s *scope, workload client.Reader) (membership, error) {
	var out membership
	for _, id := range s.pool.Spec.ProviderIDList {
		list := &corev1.NodeList{}
		if err := workload.List(ctx, list, client.MatchingFields{remote.NodeProviderID: id}); err != nil {
			return out, fmt.Errorf("finding the Node with provider ID %s: %w", id, err)
		}
		node := one(list, s.pool)
		if node == nil {
			if len(list.Items) > 1 {
				out.conflict = fmt.Sprintf("Nodes %.253s and %.253s both have provider ID %s: delete the one whose machine no longer exists",
					list.Items[0].Name, list.Items[1].Name, id)
			}
			continue
		}
		machine, rival, err := c.claims(ctx, s, node)
		if err != nil {
			return out, err
		}
		if rival != "" {
			out.conflict = fmt.Sprintf("Node %s with provider ID %s belongs to %s", node.Name, id, rival)
			continue
		}
		ref, err := bounds.NodeReference(node)
		if err != nil {
			out.conflict = err.Error()
			continue
		}
		out.nodes, out.references = append(out.nodes, node), append(out.references, *ref)
		if machine == nil {
			out.unmanaged = append(out.unmanaged, node)
		}
	}
	return out, nil
}

// one returns the Node of a provider ID. Of several, it is the one that the pool has already; otherwise none, because at least one of
// them is wrong.
func one(list *corev1.NodeList, p *clusterv1.MachinePool) *corev1.Node {
	if len(list.Items) == 1 {
		return &list.Items[0]
	}
	for i := range list.Items {
		if refersTo(p, &list.Items[i]) {
			return &list.Items[i]
		}
	}
	return nil
}

// refersTo reports whether status.nodeRefs has a Node.
func refersTo(p *clusterv1.MachinePool, node *corev1.Node) bool {
	return slices.ContainsFunc(p.Status.NodeRefs, func(r corev1.ObjectReference) bool { return r.Name == node.Name && r.UID == node.UID })
}

// setReferences sets status.nodeRefs, with an event if they change.
func setReferences(ctx context.Context, p *clusterv1.MachinePool, refs []corev1.ObjectReference) {
	if equality.Semantic.DeepEqual(p.Status.NodeRefs, refs) {
		return
	}
	p.Status.NodeRefs = refs
	var names []string
	for _, ref := range refs[:min(len(refs), maxListed)] {
		names = append(names, ref.Name)
	}
	more := ""
	if len(refs) > maxListed {
		more = fmt.Sprintf(" and %d more", len(refs)-maxListed)
	}
	step.Transition(ctx, "SuccessfulSetNodeRefs", "%d Nodes: %v%s", len(refs), names, more)
}

// reportConflict records an event for a conflict that is new: the condition does not report it yet.
func reportConflict(ctx context.Context, p *clusterv1.MachinePool, conflict string) {
	before := condition.Get(p, clusterv1.ReplicasReadyV1Beta1Condition)
	if conflict != "" && (before == nil || before.Message != conflict) {
		step.Warning(ctx, "FailedSetNodeRef", "%s", conflict)
	}
}

// count counts the Nodes. The result requeues the MachinePool when the next ready Node becomes available.
func (c *Controller) count(s *scope, found membership) step.Result {
	p := s.pool
	var ready, available int32
	var next time.Duration
	minReady := time.Duration(ptr.Deref(p.Spec.Template.Spec.MinReadySeconds, 0)) * time.Second
	for _, node := range found.nodes {
		r := readiness(node)
		if r == nil || r.Status != corev1.ConditionTrue {
			continue
		}
		ready++
		switch remaining := r.LastTransitionTime.Add(minReady).Sub(c.Clock.Now()); {
		case minReady <= 0 || remaining <= 0:
			available++
		case next == 0 || remaining < next:
			next = remaining
		}
	}
	setCounts(p, ready, available, found.nodes)
	result := step.Again(next)
	switch {
	case found.conflict != "":
		if next == 0 || next > rivalBackstop {
			next = rivalBackstop
		}
		return step.WaitAtMost(next, "the conflict to be resolved").WithConditions(condition.False(clusterv1.ReplicasReadyV1Beta1Condition,
			clusterv1.ConditionSeverityInfo, clusterv1.WaitingForReplicasReadyV1Beta1Reason, "%s", found.conflict))
	case ready != ptr.Deref(p.Status.Replicas, 0) || !managedExternally(p) && ready != desired(p):
		return result.WithConditions(condition.False(clusterv1.ReplicasReadyV1Beta1Condition, clusterv1.ConditionSeverityInfo,
			clusterv1.WaitingForReplicasReadyV1Beta1Reason, "%d of %d replicas are ready", ready, desired(p)))
	}
	return result
}

// readiness returns the Ready condition of a Node; nil if it has none.
func readiness(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	r := readiness(node)
	return r != nil && r.Status == corev1.ConditionTrue
}
