package rotation

import (
	"context"
	"fmt"

	"sigs.k8s.io/cluster-api/providers/fleet/internal/rotation/authority"
	"sigs.k8s.io/cluster-api/sdk/failsafe"
	"sigs.k8s.io/cluster-api/sdk/pki"
	"sigs.k8s.io/cluster-api/sdk/step"
)

// distribute writes the certificates of a stage, and the key that signs in it, into the Secrets of the Cluster; both at once.
func (c *Controller) distribute(ctx context.Context, s *scope, stage authority.Stage) error {
	for _, a := range s.authorities() {
		change, secret := s.changes[a], s.secrets[a]
		if change.StageOf(secret.Data) == stage {
			continue
		}
		set := func() {
			secret.Data[pki.CertificateKey] = change.Certificates(stage)
			if key := change.Key(stage); key != nil {
				secret.Data[pki.PrivateKeyKey] = key
			}
		}
		if err := c.Patch(ctx, secret, set, step.IfUnchanged); err != nil {
			return fmt.Errorf("changing Secret %s: %w", secret.Name, failsafe.Redacted(err))
		}
	}
	return nil
}
