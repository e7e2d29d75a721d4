package controlplane

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/condition"
)

// Every Machine that runs an etcd member has a pre-terminate hook of ours: whoever deletes it, and whether this manager
// runs or not, its infrastructure stays until its member has left etcd. See ADR 0012.

// hooked reports whether our hook holds up the deletion of the Machine.
func hooked(m *clusterv1.Machine) bool {
	_, ok := m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation]
	return ok
}

// awaitsHook reports whether the deletion of the Machine has come to our hook: its Node is drained, its volumes are
// detached, and all other hooks are gone. Others may need the Node, and that needs the etcd member.
func awaitsHook(m *clusterv1.Machine) bool {
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

// hook sets our hook on the Machine as it was read, so that what was decided about it still holds afterwards. It costs
// nothing if it is there, as it is from the creation of a Machine on.
func (c *Controller) hook(ctx context.Context, m *clusterv1.Machine) error {
	if hooked(m) {
		return nil
	}
	if err := c.Patch(ctx, m, true, func() { setHook(m) }); err != nil {
		return fmt.Errorf("setting the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}

func setHook(m *clusterv1.Machine) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[controlplanev1.PreTerminateHookCleanupAnnotation] = ""
}

// unhook removes our hook, if it is there.
func (c *Controller) unhook(ctx context.Context, m *clusterv1.Machine) error {
	if !hooked(m) {
		return nil
	}
	err := c.Patch(ctx, m, false, func() { delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the pre-terminate hook of Machine %s: %w", m.Name, err)
	}
	return nil
}
