package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
)

// errInvalidKeys is matched by errors about spec.encryption and its Secret.
var errInvalidKeys = errors.New("spec.encryption is invalid")

// identities returns the private keys of an encryption; none if it has no Secret with them.
func identities(ctx context.Context, secrets client.Reader, namespace string, e fleetv1.Encryption) ([]age.Identity, error) {
	if e.IdentitySecretRef == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	name := e.IdentitySecretRef.Name
	if err := secrets.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) does not exist: make a key with \"age-keygen\" or "+
				"\"capi backup --generate-key\", and run \"kubectl create secret generic %s --from-file=%s=key.txt\"",
				errInvalidKeys, name, name, fleetv1.IdentityKey)
		}
		return nil, fmt.Errorf("reading Secret %s (spec.encryption.identitySecretRef): %w", name, err)
	}
	text, found := secret.Data[fleetv1.IdentityKey]
	if !found {
		return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) has no key %s", errInvalidKeys, name, fleetv1.IdentityKey)
	}
	keys, err := archive.ParseIdentities(text)
	if err != nil {
		return nil, fmt.Errorf("%w: Secret %s (identitySecretRef): %w", errInvalidKeys, name, err)
	}
	return keys, nil
}

// recipients returns who can decrypt an archive: the recipients of an encryption, and its identities.
func recipients(e fleetv1.Encryption, own []age.Identity) ([]age.Recipient, error) {
	var all []age.Recipient
	if len(e.Recipients) > 0 {
		var err error
		if all, err = archive.ParseRecipients(e.Recipients); err != nil {
			return nil, fmt.Errorf("%w: recipients: %w", errInvalidKeys, err)
		}
	}
	for _, identity := range own {
		key, ok := identity.(*age.X25519Identity)
		if !ok {
			return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) has a key of another type than X25519", errInvalidKeys,
				e.IdentitySecretRef.Name)
		}
		if text := key.Recipient().String(); !slices.Contains(e.Recipients, text) {
			all = append(all, key.Recipient())
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it has neither recipients nor an identity", errInvalidKeys)
	}
	return all, nil
}
