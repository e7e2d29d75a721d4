package manager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/pki"
)

// secretClient is the client of all managers. Although the cache does not have all Secrets and their data, reading a Secret
// always succeeds: what is not in the cache is read from the API server. Secrets of clusters, which have the label
// cluster.x-k8s.io/cluster-name, are in the cache; reading those with kubeconfigs and keys costs no request. Of all others, the
// cache, and so a list from it, only has the metadata.
//
// Controllers that wait for a Secret and watch it can read from mgr.GetCache() instead: there a missing Secret costs
// no request either.
type secretClient struct {
	client.Client
	cached client.Reader
}

// newClient returns a manager's client. The underlying client must not cache Secrets and ConfigMaps, because their
// caches would be incomplete, or contain all of a management cluster's.
func newClient(config *rest.Config, o client.Options) (client.Client, error) {
	live, err := client.New(config, o)
	if err != nil {
		return nil, err
	}
	return &secretClient{Client: live, cached: o.Cache.Reader}, nil
}

// Get reads an object.
func (c *secretClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if secret, isSecret := o.(*corev1.Secret); isSecret {
		if c.cached.Get(ctx, key, o, opts...) == nil && !emptied(secret) {
			return nil
		}
		*secret = corev1.Secret{} // Decoding does not reset other fields.
	}
	return c.Client.Get(ctx, key, o, opts...)
}

// List reads a list of objects.
func (c *secretClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, isSecrets := list.(*corev1.SecretList); isSecrets && ofClusters(opts) {
		return c.cached.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}

// ofClusters reports whether a list only selects Secrets with the label of a cluster.
func ofClusters(opts []client.ListOption) bool {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.LabelSelector == nil || o.FieldSelector != nil {
		return false
	}
	requirements, selectable := o.LabelSelector.Requirements()
	return selectable && slices.ContainsFunc(requirements, func(r labels.Requirement) bool {
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In, selection.Exists:
			return r.Key() == clusterv1.ClusterNameLabel
		}
		return false
	})
}

// secretsOfClusters selects the Secrets that are cached.
func secretsOfClusters() (labels.Selector, error) {
	exists, err := labels.NewRequirement(clusterv1.ClusterNameLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*exists), nil
}

// maxSecret is the maximum size of the data of a cached Secret. Kubeconfigs and keys take a tenth.
const maxSecret = 128 << 10

// emptied reports whether lean may have removed the data of a Secret.
func emptied(secret *corev1.Secret) bool { return secret.Data == nil }

// lean removes data that is not read from the cache: all but that of the kubeconfigs and keys of
// clusters. Bootstrap data is large and there is one Secret per Machine, and all users can set the label.
func lean(in any) (any, error) {
	secret, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil
	}
	secret.ManagedFields = nil
	if !ofPurpose(secret) || size(secret) > maxSecret {
		secret.Data = nil
	}
	return secret, nil
}

// ofPurpose reports whether a Secret has the name of a kubeconfig or of keys of its cluster.
func ofPurpose(secret *corev1.Secret) bool {
	purposes := []pki.Purpose{pki.Kubeconfig, pki.ClusterCA, pki.EtcdCA, pki.FrontProxyCA, pki.ServiceAccount, pki.APIServerEtcdClient}
	return slices.ContainsFunc(purposes, func(p pki.Purpose) bool {
		return secret.Name == pki.SecretName(secret.Labels[clusterv1.ClusterNameLabel], p)
	})
}

func size(secret *corev1.Secret) int {
	n := 0
	for key, value := range secret.Data {
		n += len(key) + len(value)
	}
	return n
}
