package machine

import (
	"context"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/drain"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// volumesBackstop bounds the wait for the Node event of detached volumes.
const volumesBackstop = 30 * time.Second

// volumes waits until the Node has no volumes attached. It does not wait for a Node that is unreachable: its kubelet cannot detach any.
func (c *Controller) volumes(ctx context.Context, s *scope) (step.Result, error) {
	const kind = clusterv1.VolumeDetachSucceededV1Beta1Condition
	m := s.machine
	limit := seconds(m.Spec.Deletion.NodeVolumeDetachTimeoutSeconds)
	_, excluded := m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation]
	if excluded || c.elapsed(m, kind, limit) {
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
	attached := node != nil && len(node.Status.VolumesAttached) > 0
	if !attached || drain.Unreachable(node) {
		if !condition.IsTrue(m, kind) {
			condition.Set(m, condition.True(kind))
			announceVolumes(ctx, m.Status.NodeRef.Name, attached)
		}
		return step.Done(), nil
	}
	c.begin(m, kind, clusterv1.WaitingForVolumeDetachV1Beta1Reason, "Waiting for node volumes to be detached")
	return c.retry(m, kind, limit, volumesBackstop, "volumes of Node "+node.Name+" to be detached"), nil
}

func announceVolumes(ctx context.Context, node string, attached bool) {
	if attached {
		step.Warning(ctx, "FailedWaitForVolumeDetach",
			"Did not wait for volumes of Machine's node %q to be detached: the node is unreachable", node)
		return
	}
	step.Event(ctx, "NodeVolumesDetached", "success waiting for node volumes detaching Machine's node %q", node)
}
