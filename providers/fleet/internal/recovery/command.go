package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// infrastructure reads the metadata of the infrastructure machine of a Machine. Its kind is any provider's.
func (c *Controller) infrastructure(ctx context.Context, m *clusterv1.Machine) (*metav1.PartialObjectMetadata, error) {
	ref := m.Spec.InfrastructureRef
	mapping, err := c.Client.RESTMapper().RESTMapping(ref.GroupKind())
	if err != nil {
		return nil, fmt.Errorf("finding the kind of the infrastructure of Machine %s: %w", m.Name, err)
	}
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.Live.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: ref.Name}, obj); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	return obj, nil
}

// ask gives a command to the infrastructure provider of a Machine, unless it has it, and returns its answer, or nil.
func (c *Controller) ask(ctx context.Context, m *clusterv1.Machine, command fleetv1.EtcdCommand) (*fleetv1.EtcdAnswer, error) {
	obj, err := c.infrastructure(ctx, m)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(command)
	if err != nil {
		return nil, err
	}
	if obj.Annotations[fleetv1.EtcdCommandAnnotation] == string(text) {
		return fleetv1.EtcdAnswerOf(obj, command.UID), nil
	}
	return nil, c.annotate(ctx, obj, string(text))
}

// forget takes back all commands of a recovery to the infrastructure provider of a Machine, if there are any.
func (c *Controller) forget(ctx context.Context, m *clusterv1.Machine, r *fleetv1.ControlPlaneRecovery) error {
	obj, err := c.infrastructure(ctx, m)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	command := fleetv1.EtcdCommand{}
	text, found := obj.Annotations[fleetv1.EtcdCommandAnnotation]
	if !found || json.Unmarshal([]byte(text), &command) != nil || !strings.HasPrefix(command.UID, string(r.UID)) {
		return nil
	}
	return client.IgnoreNotFound(c.annotate(ctx, obj, nil))
}

// annotate sets the command, or removes it with its answer.
func (c *Controller) annotate(ctx context.Context, obj *metav1.PartialObjectMetadata, command any) error {
	annotations := map[string]any{fleetv1.EtcdCommandAnnotation: command}
	if command == nil {
		annotations[fleetv1.EtcdAnswerAnnotation] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	if err := c.Client.Patch(ctx, obj, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("changing annotation %s of %s %s: %w", fleetv1.EtcdCommandAnnotation, obj.Kind, obj.Name, err)
	}
	return nil
}
