// Package replacement tells other programs which Machines a KubeadmControlPlane replaces, by the comparison of its controller.
package replacement

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
)

// Kind returns the kind of control planes that Reasons is for.
func Kind() schema.GroupKind {
	return controlplanev1.GroupVersion.WithKind("KubeadmControlPlane").GroupKind()
}

// Reasons returns why a KubeadmControlPlane replaces a Machine; nothing if it does not. It reads the bootstrap and infrastructure
// objects of the Machine. As in the controller, those that do not exist are not compared.
func Reasons(
	ctx context.Context, reader client.Reader, controlPlane *unstructured.Unstructured, machine *clusterv1.Machine, now time.Time,
) ([]string, error) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(controlPlane.Object, kcp); err != nil {
		return nil, fmt.Errorf("decoding KubeadmControlPlane %s: %w", client.ObjectKeyFromObject(controlPlane), err)
	}
	m := &snapshot.Machine{Machine: machine}
	infrastructure, err := referenced(ctx, reader, &machine.Spec.InfrastructureRef, machine.Namespace)
	if err != nil {
		return nil, err
	}
	m.Infrastructure = infrastructure
	config, err := referenced(ctx, reader, machine.Spec.Bootstrap.ConfigRef, machine.Namespace)
	if err != nil {
		return nil, err
	}
	if config != nil {
		m.Config = &bootstrapv1.KubeadmConfig{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(config.Object, m.Config); err != nil {
			return nil, fmt.Errorf("decoding KubeadmConfig %s: %w", client.ObjectKeyFromObject(config), err)
		}
	}
	return snapshot.OutdatedReasons(kcp, m, now), nil
}

// referenced returns nil if the object does not exist.
func referenced(
	ctx context.Context, reader client.Reader, ref *corev1.ObjectReference, namespace string,
) (*unstructured.Unstructured, error) {
	if ref == nil || ref.Name == "" {
		return nil, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.GroupVersionKind())
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, u)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	if err != nil {
		return nil, nil
	}
	return u, nil
}
