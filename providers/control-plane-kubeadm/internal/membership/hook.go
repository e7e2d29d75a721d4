package membership

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/condition"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// HasHook reports whether the Machine has our hook.
func HasHook(m *clusterv1.Machine) bool {
	_, ok := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return ok
}

// HookReached reports whether the deletion of the Machine only waits for our hook: its Node is drained, its volumes are
// detached, and all other pre-terminate hooks are removed. They may need the Node, and the Node needs the etcd member.
func HookReached(m *clusterv1.Machine) bool {
	if m.DeletionTimestamp == nil || !condition.IsFalse(m, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition) {
		return false
	}
	for key := range m.Annotations {
		if strings.HasPrefix(key, clusterv1.PreTerminateDeleteHookAnnotationPrefix) && key != controlplanev1.PreTerminateHookCleanupAnnotation {
			return false
		}
	}
	return true
}

// NeedsHook reports whether a Machine must get our hook now: its deletion has begun, and has not reached hooks yet. Later, a hook that is
// missing was removed by a user, who gives up the member.
func NeedsHook(m *clusterv1.Machine) bool {
	return m.DeletionTimestamp != nil && !HasHook(m) && condition.Get(m, clusterv1.PreTerminateDeleteHookSucceededV1Beta1Condition) == nil
}

// SetHook sets our hook on the Machine in memory.
func SetHook(m *clusterv1.Machine) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
}

// EnsureHook sets our hook on the Machine in the API server, without a request if it is set, as it normally is. If the Machine has
// changed since it was read, that is a conflict.
func EnsureHook(ctx context.Context, clients step.Clients, m *clusterv1.Machine) error {
	if HasHook(m) {
		return nil
	}
	if err := clients.Patch(ctx, m, func() { SetHook(m) }, step.IfUnchanged); err != nil {
		return fmt.Errorf("setting the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}

// RemoveHook removes our hook from the Machine in the API server, if it is set.
func RemoveHook(ctx context.Context, clients step.Clients, m *clusterv1.Machine) error {
	if !HasHook(m) {
		return nil
	}
	err := clients.Patch(ctx, m, func() { delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}
