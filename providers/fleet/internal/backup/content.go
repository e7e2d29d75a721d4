package backup

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/backupstore"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

const (
	// suffix is the end of the keys of archives, and of the descriptions beside them.
	suffix, descriptionSuffix = ".age", backupstore.DescriptionSuffix
	// formatVersion is the version of what archives contain.
	formatVersion = 1
)

// Names of the entries of an archive.
const (
	metadataEntry = "metadata.json"
	secretsEntry  = "secrets.yaml"
	objectsEntry  = "objects.yaml"
	snapshotEntry = "etcd.db"
)

// Parts of an archive besides the snapshot, in status.archive.contents.
const (
	contentPKI     = "PKI"
	contentObjects = "Objects"
)

// metadata describes an archive: its first entry. Without the fields of the snapshot, which is read last, it can be written first.
type metadata struct {
	FormatVersion     int         `json:"formatVersion"`
	Namespace         string      `json:"namespace"`
	Cluster           string      `json:"cluster"`
	ClusterUID        types.UID   `json:"clusterUID"`
	Backup            string      `json:"backup"`
	Time              metav1.Time `json:"time"`
	Member            string      `json:"member"`
	EtcdClusterID     string      `json:"etcdClusterID"`
	EtcdVersion       string      `json:"etcdVersion,omitempty"`
	KubernetesVersion string      `json:"kubernetesVersion,omitempty"`
}

// secrets returns the Secrets of a cluster's CAs, as YAML.
func (c *Controller) secrets(ctx context.Context, cluster types.NamespacedName) ([]byte, error) {
	var all []byte
	for _, purpose := range pki.OfControlPlane(true) {
		secret := &corev1.Secret{}
		key := pki.SecretKey(cluster, purpose)
		if err := c.Live.Get(ctx, key, secret); err != nil {
			if apierrors.IsNotFound(err) && purpose == pki.APIServerEtcdClient {
				continue // Only clusters with an external etcd have it.
			}
			return nil, fmt.Errorf("reading Secret %s: %w", key, err)
		}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		text, err := document(secret)
		if err != nil {
			return nil, fmt.Errorf("encoding Secret %s: %w", key, err)
		}
		all = append(all, text...)
	}
	return all, nil
}

// document returns an object as a document of a YAML file, without what only the API server needs.
func document(obj client.Object) ([]byte, error) {
	obj.SetManagedFields(nil)
	text, err := yaml.Marshal(obj)
	if err != nil {
		return nil, err
	}
	return append([]byte("---\n"), text...), nil
}

// describe returns the metadata of an archive.
func describe(s *scope, cluster *clusterv1.Cluster, of member.Member, version string, now metav1.Time) ([]byte, error) {
	return json.MarshalIndent(metadata{
		FormatVersion: formatVersion, Namespace: cluster.Namespace, Cluster: cluster.Name, ClusterUID: cluster.UID, Backup: s.backup.Name,
		Time: now, Member: of.Node, EtcdClusterID: fmt.Sprintf("%x", of.ClusterID), EtcdVersion: of.Version, KubernetesVersion: version,
	}, "", "  ")
}
