// Package fence deletes control plane Machines that must never run again, without what needs their Nodes or etcd, and says what delays
// that. Which Machines, and what an operation waits for, does not belong here.
package fence

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/report"
	"sigs.k8s.io/cluster-api/sdk/step"
)

const (
	// LostAfter is how long the deletion of a Machine may take before a user's word that it is lost counts: what can be deleted, is.
	LostAfter = time.Minute
	// Prefixes of annotations by which others delay the deletion of a Machine.
	preDrainHook, preTerminateHook = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/"
)

// Delete deletes a Machine without draining, volumes, and the hook of its control plane, which is held. If it is lost, it is removed
// although its infrastructure is not deleted. It may be repeated, and a Machine that does not exist is no error.
func Delete(ctx context.Context, c step.Clients, m *clusterv1.Machine, lost bool) error {
	err := c.Patch(ctx, m, func() {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		for _, skip := range []string{clusterv1.ExcludeNodeDrainingAnnotation, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation} {
			if _, set := m.Annotations[skip]; !set {
				m.Annotations[skip] = ""
			}
		}
		delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
		if lost {
			controllerutil.RemoveFinalizer(m, clusterv1.MachineFinalizer)
		}
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

// Overdue reports whether the deletion of a Machine takes longer than LostAfter.
func Overdue(m *clusterv1.Machine, now time.Time) bool {
	return !m.DeletionTimestamp.IsZero() && now.Sub(m.DeletionTimestamp.Time) >= LostAfter
}

// Obstacle returns the name of a Machine, with what delays its deletion.
func Obstacle(m *clusterv1.Machine) string {
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
