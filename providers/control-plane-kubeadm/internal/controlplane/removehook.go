package controlplane

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// removeHook removes our hook from a Machine without a control plane.
func (c *orphanedMachines) removeHook(ctx context.Context, m *clusterv1.Machine) (step.Result, error) {
	gone, err := c.controlPlaneGone(ctx, m)
	if err != nil || !gone {
		return step.Stop(), err
	}
	delete(m.Annotations, controlplanev1.PreTerminateHookCleanupAnnotation)
	step.Warning(ctx, "ControlPlaneGone",
		"The KubeadmControlPlane of the Machine no longer exists: deleting the Machine without removing its etcd member")
	return step.Stop(), nil
}

// controlPlaneGone reports whether the Machine has no control plane that would remove the hook.
func (c *orphanedMachines) controlPlaneGone(ctx context.Context, m *clusterv1.Machine) (bool, error) {
	controller := metav1.GetControllerOf(m)
	if controller == nil {
		return true, nil
	}
	ours := schema.GroupKind{Group: controlplanev1.GroupVersion.Group, Kind: "KubeadmControlPlane"}
	if schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() != ours {
		return false, nil
	}
	key := types.NamespacedName{Namespace: m.Namespace, Name: controller.Name}
	for _, reader := range []client.Reader{c.reader, c.live} {
		kcp := &controlplanev1.KubeadmControlPlane{}
		switch err := reader.Get(ctx, key, kcp); {
		case err == nil && kcp.UID == controller.UID:
			return false, nil
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("reading KubeadmControlPlane %s: %w", key, err)
		case apierrors.IsNotFound(err):
		}
	}
	return true, nil
}
