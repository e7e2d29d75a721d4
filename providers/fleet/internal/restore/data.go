package restore

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/restorescript"
	"sigs.k8s.io/cluster-api/sdk/naming"
)

// SecretName returns the name of the Secret with what the first Machine needs.
func SecretName(r *fleetv1.ControlPlaneRestore) string {
	return naming.WithSuffix(r.Name+"-data", naming.Suffix(string(r.UID)))
}

// secret reads a Secret from the API server; nil if it does not exist.
func (c *Controller) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := c.Live.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key, err)
	}
	return secret, nil
}

// controllerRef returns a reference to a controller that does not block its deletion: that would need a permission for its finalizers.
func controllerRef(owner metav1.Object, kind schema.GroupVersionKind) *metav1.OwnerReference {
	ref := metav1.NewControllerRef(owner, kind)
	ref.BlockOwnerDeletion = nil
	return ref
}

// writeSecret creates the Secret, or replaces what an attempt before has left behind.
func (c *Controller) writeSecret(ctx context.Context, r *fleetv1.ControlPlaneRestore, config restorescript.Config) error {
	encoded, err := config.Encode()
	if err != nil {
		return fmt.Errorf("the address of the data: %w", err)
	}
	data := map[string][]byte{fleetv1.RestoreScriptKey: []byte(restorescript.Script), fleetv1.RestoreConfigKey: encoded}
	key := client.ObjectKey{Namespace: r.Namespace, Name: SecretName(r)}
	existing, err := c.secret(ctx, key)
	if err != nil {
		return err
	}
	if existing == nil {
		err = c.CreateIn(ctx, nil, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{clusterv1.ClusterNameLabel: naming.LabelValue(r.Spec.ClusterName)},
				OwnerReferences: []metav1.OwnerReference{*controllerRef(r, fleetv1.GroupVersion.WithKind(fleetv1.ControlPlaneRestoreKind))},
			},
			Type: clusterv1.ClusterSecretType, Data: data,
		})
	} else {
		if !metav1.IsControlledBy(existing, r) {
			return fmt.Errorf("Secret %s exists, and is not of this ControlPlaneRestore: delete it", key)
		}
		if bytes.Equal(existing.Data[fleetv1.RestoreConfigKey], encoded) {
			return nil
		}
		err = c.Patch(ctx, existing, func() { existing.Data = data })
	}
	if err != nil {
		return fmt.Errorf("writing Secret %s: %w", key, err)
	}
	return nil
}

// readSecret returns the configuration in the Secret.
func (c *Controller) readSecret(ctx context.Context, r *fleetv1.ControlPlaneRestore) (restorescript.Config, error) {
	key := client.ObjectKey{Namespace: r.Namespace, Name: SecretName(r)}
	secret, err := c.secret(ctx, key)
	if err != nil {
		return restorescript.Config{}, err
	}
	if secret == nil {
		return restorescript.Config{}, fmt.Errorf("Secret %s does not exist", key)
	}
	config, err := restorescript.Parse(string(secret.Data[fleetv1.RestoreConfigKey]))
	if err != nil {
		return restorescript.Config{}, fmt.Errorf("Secret %s: %s: %w", key, fleetv1.RestoreConfigKey, err)
	}
	return config, nil
}

// dropData deletes what was stored for the Machine.
func (c *Controller) dropData(ctx context.Context, r *fleetv1.ControlPlaneRestore) error {
	secret, err := c.secret(ctx, client.ObjectKey{Namespace: r.Namespace, Name: SecretName(r)})
	if err != nil {
		return err
	}
	if secret != nil && metav1.IsControlledBy(secret, r) {
		if err := c.DeleteAny(ctx, secret); err != nil {
			return fmt.Errorf("deleting Secret %s: %w", secret.Name, err)
		}
	}
	if r.Status.Backup == nil {
		return nil // Nothing was stored.
	}
	in, err := c.opener.Named(ctx, r.Namespace, r.Status.Backup.StoreName)
	if err != nil {
		return err
	}
	return in.Delete(ctx, dataKey(r))
}
