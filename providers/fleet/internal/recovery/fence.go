package recovery

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// fence deletes the lost Machines, and waits until their infrastructure is gone: one that comes back later would be another etcd with the
// same IDs and other data. If the user vouches for that, it does not wait.
func (c *Controller) fence(ctx context.Context, s *scope) (step.Result, error) {
	if s.completed(fenceStep) {
		return step.Done(), nil
	}
	now := c.Clock.Now()
	s.begin(fenceStep, now)
	var left []string
	for _, name := range s.recovery.Spec.LostMachines {
		m := s.machine(name)
		if m == nil {
			continue
		}
		if err := c.remove(ctx, m); err != nil {
			return step.Result{}, err
		}
		gone, err := c.gone(ctx, m)
		if err != nil {
			return step.Result{}, err
		}
		if !gone {
			left = append(left, waitingFor(m))
		}
	}
	if len(left) > 0 && !s.recovery.Spec.Fenced {
		return s.waits(fenceStep, now, "the infrastructure of %s to be deleted", strings.Join(left, ", "))
	}
	how := "their infrastructure is deleted"
	if len(left) > 0 {
		how = "as spec.fenced says, they do not run"
	}
	s.complete(fenceStep, now, "Machines %s: %s", strings.Join(s.recovery.Spec.LostMachines, ", "), how)
	return step.WaitAtMost(poll, "the mark of the fence to be written"), nil
}

// remove deletes a lost Machine without what needs its Node or its etcd member.
func (c *Controller) remove(ctx context.Context, m *clusterv1.Machine) error {
	err := c.Patch(ctx, m, func() {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		for _, skip := range []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation} {
			if _, set := m.Annotations[skip]; !set {
				m.Annotations[skip] = "true"
			}
		}
		delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("preparing the deletion of Machine %s: %w", m.Name, err)
	}
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := c.DeleteAny(ctx, m); err != nil {
		return fmt.Errorf("deleting Machine %s: %w", m.Name, err)
	}
	return nil
}

// gone reports whether the infrastructure of a Machine is deleted. The Machine itself may wait to delete its Node, which needs the
// API server.
func (c *Controller) gone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	_, err := c.infrastructure(ctx, m)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// waitingFor returns the name of a Machine, with the hooks of others that hold it.
func waitingFor(m *clusterv1.Machine) string {
	var hooks []string
	for key := range m.Annotations {
		for _, prefix := range []string{clusterv1.PreDrainDeleteHookAnnotationPrefix, clusterv1.PreTerminateDeleteHookAnnotationPrefix} {
			if strings.HasPrefix(key, prefix) {
				hooks = append(hooks, key)
			}
		}
	}
	if len(hooks) == 0 {
		return "Machine " + m.Name
	}
	return fmt.Sprintf("Machine %s (held by annotations %s)", m.Name, strings.Join(sorted(hooks), ", "))
}
