package restore

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// certificates creates the Secrets of CAs that the Cluster does not have, from the archive, and returns what users should know about those
// that differ. What is present is kept: the workers trust it. CAs of another Cluster are not restored: the control plane has its own.
func (c *Controller) certificates(ctx context.Context, s *scope, from *content.Archive) ([]string, error) {
	var differ, restored, notes []string
	for _, purpose := range pki.OfControlPlane(false) {
		key := pki.SecretKey(s.clusterKey(), purpose)
		present, err := c.secret(ctx, key)
		if err != nil {
			return nil, err
		}
		archived := secretNamed(from, pki.SecretName(from.Metadata.Cluster, purpose))
		switch {
		case present == nil && archived != nil && !s.restore.Status.Backup.OtherCluster:
			owner := controllerRef(s.kcp, controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"))
			if err := c.CreateIn(ctx, nil, pki.NewSecret(s.clusterKey(), purpose, archived.Data, owner)); err != nil {
				return nil, fmt.Errorf("restoring Secret %s: %w", key, err)
			}
			restored = append(restored, key.Name)
		case present != nil && archived != nil && !bytes.Equal(present.Data[pki.PrivateKeyKey], archived.Data[pki.PrivateKeyKey]):
			differ = append(differ, key.Name)
		}
	}
	if len(restored) > 0 {
		notes = append(notes, "these Secrets were missing, and are restored from the archive: "+strings.Join(restored, ", "))
	}
	if len(differ) > 0 {
		notes = append(notes, "the cluster keeps its present CAs and keys, which differ from those of the backup: "+strings.Join(differ, ", ")+
			". Tokens of ServiceAccounts and client certificates from the time of the backup are no longer valid: "+
			"Pods that use them must be restarted")
	}
	return notes, nil
}
