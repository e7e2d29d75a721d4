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
)

// secretClient is the client of all managers. Reading a Secret never misses one, or its data, because of how the cache
// is restricted: what is not there is asked of the API server. Secrets of clusters, which carry the label
// cluster.x-k8s.io/cluster-name, are in the cache and cost no request; of bootstrap data the cache holds only the
// metadata, and so do lists.
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

// emptied tells a Secret that lean dropped the data of.
func emptied(secret *corev1.Secret) bool {
	return secret.Type == clusterv1.ClusterSecretType && secret.Data == nil
}

// lean drops from cached Secrets what is large, many and next to never read: the bootstrap data of Machines, the only
// cluster Secrets with a format.
func lean(in any) (any, error) {
	secret, ok := in.(*corev1.Secret)
	if !ok {
		return in, nil
	}
	secret.ManagedFields = nil
	if _, isBootstrapData := secret.Data["format"]; isBootstrapData && secret.Type == clusterv1.ClusterSecretType {
		secret.Data = nil
	}
	return secret, nil
}
