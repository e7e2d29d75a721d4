package manager

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/provider/pki"
)

// secretClient is the client of all managers. Reading a Secret never misses one, or its data, because of how the cache
// is restricted: what is not there is asked of the API server. Secrets of clusters, which carry the label
// cluster.x-k8s.io/cluster-name, are in the cache; those with kubeconfigs and keys cost no request. Of all others the
// cache, and so a list from it, holds only the metadata.
//
// Whoever waits for a Secret and is woken by an event can read mgr.GetCache() instead: there a missing Secret costs
// nothing either.
type secretClient struct {
	client.Client
	cached client.Reader
}

// newClient makes a manager's client. Secrets and ConfigMaps may not be cached by the client below it, because their
// caches hold only a part of them, or would hold all of a management cluster's.
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
		*secret = corev1.Secret{} // Decoding adds to what is there.
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

// ofClusters tells whether only Secrets with the label of a cluster are asked for.
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

// maxSecret is how much data the cache holds of a Secret. Kubeconfigs and keys take a tenth.
const maxSecret = 128 << 10

// emptied is whether lean may have dropped the data of a Secret.
func emptied(secret *corev1.Secret) bool { return secret.Data == nil }

// lean drops from cached Secrets the data that is not read from the cache: all but that of the kubeconfigs and keys of
// clusters. Bootstrap data is large and there is one for each Machine, and the label is anybody's to set.
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

// ofPurpose is whether a Secret has the name of a kubeconfig or of keys of its cluster.
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
