// Package hold takes a control plane from its controller while an operation changes its Machines, and gives it back. One operation holds a
// control plane at a time. What operations do with it does not belong here.
package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// ErrBusy is matched by the error if another operation holds the control plane.
var ErrBusy = errors.New("another operation is in progress")

// Busy returns an error that matches ErrBusy if an operation other than op is on a KubeadmControlPlane, and another one if its
// annotation is invalid.
func Busy(kcp *controlplanev1.KubeadmControlPlane, op fleetv1.Operation) error {
	current, err := fleetv1.OperationOf(kcp)
	if err != nil {
		return fmt.Errorf("KubeadmControlPlane %s: %w", kcp.Name, err)
	}
	// There is one object of a name: with another UID, it was moved here with its control plane, or an earlier one was deleted by force.
	if current != nil && current.UID != op.UID && (current.Kind != op.Kind || current.Name != op.Name) {
		return fmt.Errorf("%w: %s %s on KubeadmControlPlane %s: wait until it has completed, or delete it", ErrBusy, current.Kind, current.Name,
			kcp.Name)
	}
	return nil
}

// Holder holds control planes.
type Holder struct {
	// Client writes annotations.
	Client client.Writer
	// Live reads control planes from the API server.
	Live client.Reader
}

// Set makes op the operation on a KubeadmControlPlane, or changes its mode, and reports whether the controller of the control plane has
// observed that. It does not wait: that controller may be stopped, or be one that does not know operations. A control plane that does not
// exist is a NotFound error.
func (h Holder) Set(ctx context.Context, controlPlane client.ObjectKey, op fleetv1.Operation) (observed bool, err error) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := h.Live.Get(ctx, controlPlane, kcp); err != nil {
		return false, fmt.Errorf("reading KubeadmControlPlane %s: %w", controlPlane, err)
	}
	if err := Busy(kcp, op); err != nil {
		return false, err
	}
	current, err := fleetv1.OperationOf(kcp)
	if err != nil {
		return false, err
	}
	if current == nil || *current != op {
		text, err := json.Marshal(op)
		if err != nil {
			return false, err
		}
		return false, h.annotate(ctx, kcp, map[string]any{fleetv1.OperationAnnotation: string(text)})
	}
	return kcp.Annotations[fleetv1.OperationObservedAnnotation] == op.Token(), nil
}

// Release gives the control plane back, if op holds it, and changes the names of its next Machines. The control plane may be gone.
func (h Holder) Release(ctx context.Context, controlPlane client.ObjectKey, op fleetv1.Operation) error {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := h.Live.Get(ctx, controlPlane, kcp); err != nil {
		return client.IgnoreNotFound(err)
	}
	if current, err := fleetv1.OperationOf(kcp); err != nil || current == nil || current.UID != op.UID {
		return err
	}
	ended := map[string]any{fleetv1.OperationAnnotation: nil, fleetv1.OperatedAnnotation: string(op.UID)}
	return client.IgnoreNotFound(h.annotate(ctx, kcp, ended))
}

// annotate sets annotations, or removes them, if the control plane has not changed meanwhile: another operation may have begun.
func (h Holder) annotate(ctx context.Context, kcp *controlplanev1.KubeadmControlPlane, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": kcp.ResourceVersion, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	err = h.Client.Patch(ctx, kcp, client.RawPatch("application/merge-patch+json", patch))
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("changing annotation %s of KubeadmControlPlane %s: %w",
			fleetv1.OperationAnnotation, client.ObjectKeyFromObject(kcp), err)
	}
	return err
}
