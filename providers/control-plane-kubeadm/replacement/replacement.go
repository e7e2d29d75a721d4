// Package replacement tells other programs which Machines a KubeadmControlPlane replaces, by the comparison of its controller.
package replacement

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/control-plane-kubeadm/internal/snapshot"
	"sigs.k8s.io/cluster-api/sdk/contract"
	"sigs.k8s.io/cluster-api/sdk/conversion"
)

// Kind returns the kind of control planes that Reasons is for.
func Kind() schema.GroupKind {
	return controlplanev1.GroupVersion.WithKind("KubeadmControlPlane").GroupKind()
}

// Reasons returns why a KubeadmControlPlane, in any version, replaces a Machine; nothing if it does not. It reads the bootstrap and
// infrastructure objects of the Machine, and the CustomResourceDefinition of the latter. As in the controller, objects that do not exist
// are not compared.
func Reasons(
	ctx context.Context, reader client.Reader, controlPlane *unstructured.Unstructured, machine *clusterv1.Machine, now time.Time,
) ([]string, error) {
	kcp := &controlplanev1.KubeadmControlPlane{}
	if err := decode(ctx, controlPlane, kcp); err != nil {
		return nil, fmt.Errorf("decoding KubeadmControlPlane %s: %w", client.ObjectKeyFromObject(controlPlane), err)
	}
	spec, err := snapshot.SpecOf(ctx, kcp)
	if err != nil {
		return nil, err
	}
	m := &snapshot.Machine{Machine: machine}
	if m.Infrastructure, err = infrastructureOf(ctx, reader, machine); err != nil {
		return nil, err
	}
	if m.Config, err = configOf(ctx, reader, machine); err != nil {
		return nil, err
	}
	return snapshot.OutdatedReasons(ctx, spec, m, now)
}

// decode decodes an object in any version.
func decode(ctx context.Context, u *unstructured.Unstructured, obj client.Object) error {
	newest, err := conversion.Shared().In(ctx, controlplanev1.GroupVersion.Version, u)
	if err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(newest.Object, obj)
}

// configOf returns nil if the KubeadmConfig does not exist.
func configOf(ctx context.Context, reader client.Reader, machine *clusterv1.Machine) (*bootstrapv1.KubeadmConfig, error) {
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Name == "" || ref.GroupKind() != snapshot.ConfigKind().GroupKind() {
		return nil, nil
	}
	key := client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}
	u, err := read(ctx, reader, snapshot.ConfigKind(), key)
	if err != nil || u == nil {
		return nil, err
	}
	config := &bootstrapv1.KubeadmConfig{}
	if err := decode(ctx, u, config); err != nil {
		return nil, fmt.Errorf("decoding KubeadmConfig %s: %w", key, err)
	}
	return config, nil
}

// infrastructureOf returns nil if the infrastructure machine does not exist, or if its kind is not installed.
func infrastructureOf(ctx context.Context, reader client.Reader, machine *clusterv1.Machine) (*unstructured.Unstructured, error) {
	ref := machine.Spec.InfrastructureRef
	if ref.Name == "" {
		return nil, nil
	}
	kind, err := contract.APIVersions{Reader: reader}.Newest(ctx, ref.GroupKind())
	if missing := (&contract.NotInstalledError{}); errors.As(err, &missing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(ctx, reader, kind, client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name})
}

// read returns nil if the object does not exist.
func read(
	ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, key client.ObjectKey,
) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	err := reader.Get(ctx, key, u)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind.Kind, key, err)
	}
	if err != nil {
		return nil, nil
	}
	return u, nil
}
