package hook

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// IsSet reports whether the Machine has our hook.
func IsSet(m *clusterv1.Machine) bool {
	_, ok := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return ok
}

// IsReached reports whether the deletion of the Machine waits for nothing but our hook: its Node is drained, its volumes are
// detached, and all other pre-terminate hooks are removed. They may need the Node, and the Node needs the etcd member.
func IsReached(m *clusterv1.Machine) bool {
	if m.DeletionTimestamp == nil || !condition.IsFalse(m, clusterv1.PreTerminateDeleteHookSucceededCondition) {
		return false
	}
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			return false
		}
	}
	return true
}

// Set sets our hook on the Machine in memory.
func Set(m *clusterv1.Machine) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
}

// Ensure sets our hook on the Machine in the API server, without a request if it is set, as it normally is. If the Machine has
// changed since it was read, that is a conflict.
func Ensure(ctx context.Context, outside step.Outside, m *clusterv1.Machine) error {
	if IsSet(m) {
		return nil
	}
	if err := outside.Patch(ctx, m, func() { Set(m) }, step.IfUnchanged); err != nil {
		return fmt.Errorf("setting the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}

// Remove removes our hook from the Machine in the API server, if it is set.
func Remove(ctx context.Context, outside step.Outside, m *clusterv1.Machine) error {
	if !IsSet(m) {
		return nil
	}
	err := outside.Patch(ctx, m, func() { delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}
