package machine

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/remote"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// volumesBackstop bounds the wait for the Node event of detached volumes; VolumeAttachments have none.
const volumesBackstop = 30 * time.Second

// volumes waits until the volumes of the Node are detached, except those of Pods that stay on it. It does not wait for a Node that is
// unreachable: its kubelet cannot detach any.
func (c *Controller) volumes(ctx context.Context, s *scope) (step.Result, error) {
	const kind = clusterv1.VolumeDetachSucceededV1Beta1Condition
	m := s.machine
	limit := seconds(m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds)
	_, excluded := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	// Once is enough: after that, the API server of a control plane may be the one that is being deleted.
	if excluded || condition.IsTrue(m, kind) || c.elapsed(m, kind, limit) {
		return step.Done(), nil
	}
	workload, r, err := c.reach(ctx, s, kind, limit)
	if workload == nil {
		return r, err
	}
	node, err := ownNode(ctx, workload, m)
	if err != nil {
		step.Warning(ctx, "FailedWaitForVolumeDetach", "error waiting for node volumes detaching, Machine's node %q: %v",
			m.Status.NodeRef.Name, err)
		return step.Done(), err
	}
	if node == nil || drain.Unreachable(node) {
		c.volumesDone(ctx, m, node != nil && len(node.Status.VolumesAttached) > 0)
		return step.Done(), nil
	}
	attached, err := c.attachedVolumes(ctx, s, workload, node)
	if err == nil && len(attached) == 0 {
		c.volumesDone(ctx, m, false)
		return step.Done(), nil
	}
	c.begin(m, kind, clusterv1.WaitingForVolumeDetachV1Beta1Reason, "Waiting for node volumes to be detached")
	if err != nil {
		step.Warning(ctx, "FailedWaitForVolumeDetach", "error waiting for node volumes detaching, Machine's node %q: %v", node.Name, err)
		return c.retry(m, kind, limit, volumesBackstop, fmt.Sprintf("volumes of Node %s, which could not be read: %v", node.Name, err)), nil
	}
	return c.retry(m, kind, limit, volumesBackstop, "volumes of Node "+node.Name+" to be detached: "+report.Names(attached)), nil
}

// attachedVolumes returns the volumes of the Node that the deletion waits for.
func (c *Controller) attachedVolumes(ctx context.Context, s *scope, workload *remote.Cluster, node *corev1.Node) ([]string, error) {
	rules, err := c.drainRules(ctx, s)
	if err != nil {
		return nil, err
	}
	return c.drainer.Volumes(ctx, workload, node, rules)
}

// volumesDone reports that the step has ended; attached: although volumes are attached to the Node, which is unreachable.
func (c *Controller) volumesDone(ctx context.Context, m *clusterv1.Machine, attached bool) {
	const kind = clusterv1.VolumeDetachSucceededV1Beta1Condition
	condition.Set(m, condition.True(kind))
	announceVolumes(ctx, m.Status.NodeRef.Name, attached)
}

func announceVolumes(ctx context.Context, node string, attached bool) {
	if attached {
		step.Warning(ctx, "FailedWaitForVolumeDetach",
			"Did not wait for volumes of Machine's node %q to be detached: the node is unreachable", node)
		return
	}
	step.Event(ctx, "NodeVolumesDetached", "success waiting for node volumes detaching Machine's node %q", node)
}
