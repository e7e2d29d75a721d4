package restore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/sdk/report"
)

const (
	// machineFinalizer is the finalizer that Machines have until their infrastructure is gone.
	machineFinalizer = clusterv1.MachineFinalizer
	// lostAfter is how long the deletion of a Machine may take before a user's word that it is lost counts: what can be deleted, is.
	lostAfter = time.Minute
	// Prefixes of annotations by which others delay the deletion of a Machine.
	preDrainHook, preTerminateHook = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/"
)

// fence deletes all control plane Machines: two control planes with the same name and different data must not run. Each is recorded before
// it is deleted, because its Node is deleted later. No others are created meanwhile, as the control plane is held.
func (c *Controller) fence(ctx context.Context, s *scope) (outcome, error) {
	machines, err := c.controlPlaneMachines(ctx, s.clusterKey())
	if err != nil {
		return outcome{}, err
	}
	if len(machines) == 0 {
		return done(fmt.Sprintf("%d control plane Machines are gone", len(s.restore.Status.FencedMachines))), nil
	}
	if s.recordFenced(machines) {
		return outcome{write: true, message: "the deletion of control plane Machines to begin"}, nil
	}
	// The KubeadmControlPlane was read with the annotation of this operation before; another mode would create Machines.
	if observed, err := c.set(ctx, s, fleetv1.OperationModeHold); err != nil || !observed {
		return waits("the controller of KubeadmControlPlane " + s.kcp.Name + " to stop changing Machines"), err
	}
	var left []string
	for i := range machines {
		if err := c.fenceOne(ctx, s, &machines[i]); err != nil {
			return outcome{}, err
		}
		left = append(left, obstacle(&machines[i]))
	}
	return waits("control plane Machines to be deleted: " + strings.Join(left, "; ") + hint(s, machines, c.Clock.Now())), nil
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

// fenceOne deletes a Machine, without what needs its Node: draining, volumes, and the hook of its control plane, which is held.
func (c *Controller) fenceOne(ctx context.Context, s *scope, m *clusterv1.Machine) error {
	err := c.Patch(ctx, m, func() {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[clusterv1.ExcludeNodeDrainingAnnotation] = ""
		m.Annotations[clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation] = ""
		delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
		if s.isLost(m, c.Clock.Now()) {
			controllerutil.RemoveFinalizer(m, machineFinalizer)
		}
	})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := c.DeleteAny(ctx, m); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	return nil
}

// isLost reports whether a Machine is removed although its infrastructure is not deleted, because a user knows that it no longer runs.
func (s *scope) isLost(m *clusterv1.Machine, now time.Time) bool {
	return ptr.Deref(s.restore.Spec.Fenced, false) && overdue(m, now)
}

func overdue(m *clusterv1.Machine, now time.Time) bool {
	return !m.DeletionTimestamp.IsZero() && now.Sub(m.DeletionTimestamp.Time) >= lostAfter
}

// obstacle returns a Machine with what delays its deletion.
func obstacle(m *clusterv1.Machine) string {
	var hooks []string
	for name := range m.Annotations {
		if strings.HasPrefix(name, preDrainHook) || strings.HasPrefix(name, preTerminateHook) {
			hooks = append(hooks, name)
		}
	}
	slices.Sort(hooks)
	if len(hooks) > 0 {
		return m.Name + " (annotation " + strings.Join(hooks, ", ") + " must be removed by its owner)"
	}
	if c := report.Get(m, clusterv1.DeletingCondition); c != nil && c.Message != "" {
		return m.Name + " (" + strings.TrimPrefix(c.Message, "* ") + ")"
	}
	return m.Name
}

// hint returns what users can do about Machines whose deletion takes long.
func hint(s *scope, machines []clusterv1.Machine, now time.Time) string {
	if ptr.Deref(s.restore.Spec.Fenced, false) || !slices.ContainsFunc(machines, func(m clusterv1.Machine) bool { return overdue(&m, now) }) {
		return ""
	}
	return ". If their hardware is lost, and never starts again, set spec.fenced to true"
}
