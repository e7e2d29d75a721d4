package credentials

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// SecretReader reads Secrets of clusters from the cache. Secrets that are not in the cache cost no request. The cache does not
// keep the data of large Secrets, so these are read live: users who can write a Secret can enlarge it.
type SecretReader struct {
	Cached, Live client.Reader
}

// Get implements client.Reader.
func (r SecretReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := r.Cached.Get(ctx, key, obj, opts...)
	secret, ok := obj.(*corev1.Secret)
	if err != nil || !ok || secret.Data != nil {
		return err
	}
	*secret = corev1.Secret{} // because decoding merges into existing data
	return r.Live.Get(ctx, key, secret, opts...)
}

// List implements client.Reader.
func (r SecretReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Cached.List(ctx, list, opts...)
}
