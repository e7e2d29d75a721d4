package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/fence"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/operation"
)

// fence deletes all control plane Machines: two control planes with the same name and different data must not run. Each is recorded before
// it is deleted, because its Node is deleted later. No others are created meanwhile, as the control plane is held.
func (c *Controller) fence(ctx context.Context, s *scope) (operation.Outcome, error) {
	machines, err := c.controlPlaneMachines(ctx, s.clusterKey())
	if err != nil {
		return operation.Outcome{}, err
	}
	if len(machines) == 0 {
		return operation.Done(fmt.Sprintf("%d control plane Machines are gone", len(s.restore.Status.FencedMachines))), nil
	}
	if s.recordFenced(machines) {
		return operation.Records("the deletion of control plane Machines to begin"), nil
	}
	// The KubeadmControlPlane was read with the annotation of this operation before; another mode would create Machines.
	if observed, err := c.set(ctx, s, fleetv1.OperationModeHold); err != nil || !observed {
		return operation.Waits("the controller of KubeadmControlPlane " + s.kcp.Name + " to stop changing Machines"), err
	}
	var left []string
	for i := range machines {
		m := &machines[i]
		// What a user says about hardware counts only for what cannot be deleted.
		lost := ptr.Deref(s.restore.Spec.Fenced, false) && fence.Overdue(m, c.Clock.Now())
		if err := fence.Delete(ctx, c.Clients, m, lost); err != nil {
			return operation.Outcome{}, err
		}
		left = append(left, fence.Obstacle(m))
	}
	return operation.Waits("control plane Machines to be deleted: " + strings.Join(left, "; ") + hint(s, machines, c.Clock.Now())), nil
}

// recordFenced records Machines in the status, and reports whether one was new.
func (s *scope) recordFenced(machines []clusterv1.Machine) bool {
	status, changed := &s.restore.Status, false
	for i := range machines {
		m := &machines[i]
		if !slices.ContainsFunc(status.FencedMachines, func(f fleetv1.FencedMachine) bool { return f.UID == m.UID }) {
			status.FencedMachines = append(status.FencedMachines, fleetv1.FencedMachine{UID: m.UID, Name: m.Name, NodeName: m.Status.NodeRef.Name})
			changed = true
		}
	}
	return changed
}

// hint returns what users can do about Machines whose deletion takes long.
func hint(s *scope, machines []clusterv1.Machine, now time.Time) string {
	overdue := func(m clusterv1.Machine) bool { return fence.Overdue(&m, now) }
	if ptr.Deref(s.restore.Spec.Fenced, false) || !slices.ContainsFunc(machines, overdue) {
		return ""
	}
	return ". If their hardware is lost, and never starts again, set spec.fenced to true"
}
