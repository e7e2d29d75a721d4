package content

import (
	"context"
	"errors"
	"fmt"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
)

// ErrInvalidKeys is matched by errors about keys of archives, and the Secrets with them.
var ErrInvalidKeys = errors.New("spec.encryption is invalid")

// Identities returns the private keys in a Secret.
func Identities(ctx context.Context, secrets client.Reader, namespace, name string) ([]age.Identity, error) {
	secret := &corev1.Secret{}
	if err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) does not exist: make a key with \"age-keygen\" or "+
				"\"capi backup --generate-key\", and run \"kubectl create secret generic %s --from-file=%s=key.txt\"",
				ErrInvalidKeys, name, name, fleetv1.IdentityKey)
		}
		return nil, fmt.Errorf("reading Secret %s (spec.encryption.identitySecretRef): %w", name, err)
	}
	text, found := secret.Data[fleetv1.IdentityKey]
	if !found {
		return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) has no key %s", ErrInvalidKeys, name, fleetv1.IdentityKey)
	}
	keys, err := archive.ParseIdentities(text)
	if err != nil {
		return nil, fmt.Errorf("%w: Secret %s (identitySecretRef): %w", ErrInvalidKeys, name, err)
	}
	return keys, nil
}
