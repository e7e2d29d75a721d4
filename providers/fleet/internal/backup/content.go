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
	"sigs.k8s.io/cluster-api/providers/fleet/internal/content"
	"sigs.k8s.io/cluster-api/providers/fleet/internal/member"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// Parts of an archive besides the snapshot, in status.archive.contents.
const (
	contentPKI     = "PKI"
	contentObjects = "Objects"
)

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

// objects returns the Cluster and its Machines, as YAML, and the version of Kubernetes of the Machine with a Node.
func (c *Controller) objects(ctx context.Context, cluster *clusterv1.Cluster, node string) (all []byte, version string, err error) {
	of := cluster.DeepCopy()
	of.SetGroupVersionKind(clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	all, err = document(of)
	if err != nil {
		return nil, "", fmt.Errorf("encoding Cluster %s: %w", cluster.Name, err)
	}
	machines := &clusterv1.MachineList{}
	if err := c.Live.List(ctx, machines, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}); err != nil {
		return nil, "", fmt.Errorf("listing Machines: %w", err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		if m.Status.NodeRef.Name == node {
			version = m.Spec.Version
		}
		m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
		text, err := document(m)
		if err != nil {
			return nil, "", fmt.Errorf("encoding Machine %s: %w", m.Name, err)
		}
		all = append(all, text...)
	}
	return all, version, nil
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
	return json.MarshalIndent(content.Metadata{
		FormatVersion: content.FormatVersion, Namespace: cluster.Namespace, Cluster: cluster.Name, ClusterUID: cluster.UID, Backup: s.backup.Name,
		Time: now, Member: of.Node, EtcdClusterID: fmt.Sprintf("%x", of.ClusterID), EtcdVersion: of.Version, KubernetesVersion: version,
	}, "", "  ")
}
