package backup

import (
	"context"
	"fmt"
	"slices"

	"filippo.io/age"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
	"sigs.k8s.io/cluster-api/backup/archive"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
)

// identities returns the private keys of an encryption; none if it has no Secret with them.
func identities(ctx context.Context, secrets client.Reader, namespace string, e fleetv1.Encryption) ([]age.Identity, error) {
	if e.IdentitySecretRef == nil {
		return nil, nil
	}
	return content.Identities(ctx, secrets, namespace, e.IdentitySecretRef.Name)
}

// recipients returns who can decrypt an archive: the recipients of an encryption, and its identities.
func recipients(e fleetv1.Encryption, own []age.Identity) ([]age.Recipient, error) {
	var all []age.Recipient
	if len(e.Recipients) > 0 {
		var err error
		if all, err = archive.ParseRecipients(e.Recipients); err != nil {
			return nil, fmt.Errorf("%w: recipients: %w", content.ErrInvalidKeys, err)
		}
	}
	for _, identity := range own {
		key, ok := identity.(*age.X25519Identity)
		if !ok {
			return nil, fmt.Errorf("%w: Secret %s (identitySecretRef) has a key of another type than X25519", content.ErrInvalidKeys,
				e.IdentitySecretRef.Name)
		}
		if text := key.Recipient().String(); !slices.Contains(e.Recipients, text) {
			all = append(all, key.Recipient())
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: it has neither recipients nor an identity", content.ErrInvalidKeys)
	}
	return all, nil
}
