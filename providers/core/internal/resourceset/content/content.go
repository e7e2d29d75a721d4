// Package content reads the ConfigMaps and Secrets that hold the manifests of ClusterResourceSets.
//
// Only their metadata is cached, and of Secrets only those of the documented type: the ConfigMaps and Secrets of a whole management
// cluster are too large. Contents are read from the API server when they are needed; their hash is remembered until they change.
//
// What does not belong here: parsing manifests (package manifest).
package content

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	"sigs.k8s.io/cluster-api/providers/core/internal/resourceset/manifest"
)

const (
	// remembered is the number of hashes that a Reader remembers, some hundred bytes for each. Forgetting one costs a read.
	remembered = 4096
	// kept is the number of contents that a Reader keeps, at most 1 MiB for each.
	kept = 8
)

// UnavailableError means that a ConfigMap or Secret has no manifests.
type UnavailableError struct {
	Ref addonsv1.ResourceRef
	// WrongType means that it is a Secret of another type. Otherwise it does not exist.
	WrongType bool
}

// Error implements error.
func (e *UnavailableError) Error() string {
	if e.WrongType {
		return fmt.Sprintf("Secret %s must have type %s: delete it and create it with this type",
			e.Ref.Name, addonsv1.ClusterResourceSetSecretType)
	}
	return fmt.Sprintf("%s %s does not exist", e.Ref.Kind, e.Ref.Name)
}

// Content is the content of a ConfigMap or Secret.
type Content struct {
	Data map[string][]byte
	Hash string
}

// Reader reads ConfigMaps and Secrets. It is safe for concurrent use.
type Reader struct {
	// cached has the metadata of ConfigMaps, and of Secrets of the documented type; live reads from the API server.
	cached, live client.Reader
	hashes       *lru.Cache // of hashed, by UID
	recent       *lru.Cache // of versioned, by UID
}

// versioned is the content of a version of an object.
type versioned struct {
	Content
	version string
}

type hashed struct{ version, hash string }

// NewReader returns a Reader. cached has the metadata of ConfigMaps, and of Secrets of the documented type.
func NewReader(cached, live client.Reader) *Reader {
	return &Reader{cached: cached, live: live, hashes: lru.New(remembered), recent: lru.New(kept)}
}

// Metadata returns empty metadata of the kind of ref.
func Metadata(ref addonsv1.ResourceRef) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(ref.Kind))
	return m
}

// Cached returns the cached metadata, or an UnavailableError.
func (r *Reader) Cached(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (*metav1.PartialObjectMetadata, error) {
	m := Metadata(ref)
	err := r.cached.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, m)
	if apierrors.IsNotFound(err) {
		return nil, &UnavailableError{Ref: ref}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the metadata of %s %s: %w", ref.Kind, ref.Name, err)
	}
	return m, nil
}

// Find returns the metadata, or an UnavailableError. What is not cached is read from the API server.
func (r *Reader) Find(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (*metav1.PartialObjectMetadata, error) {
	m, err := r.Cached(ctx, namespace, ref)
	if _, missing := errors.AsType[*UnavailableError](err); !missing {
		return m, err
	}
	obj, _, err := r.get(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	m = Metadata(ref)
	m.SetNamespace(namespace)
	m.SetName(ref.Name)
	m.SetUID(obj.GetUID())
	m.SetResourceVersion(obj.GetResourceVersion())
	m.SetOwnerReferences(obj.GetOwnerReferences())
	return m, nil
}

// Owned returns the cached metadata of the ConfigMaps and Secrets of a namespace that have an owner. It may be modified.
func (r *Reader) Owned(ctx context.Context, namespace string, owner types.UID) ([]*metav1.PartialObjectMetadata, error) {
	var owned []*metav1.PartialObjectMetadata
	for _, kind := range []addonsv1.ClusterResourceSetResourceKind{
		addonsv1.ConfigMapClusterResourceSetResourceKind, addonsv1.SecretClusterResourceSetResourceKind,
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		if err := r.cached.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the metadata of %ss: %w", kind, err)
		}
		for i := range list.Items {
			if slices.ContainsFunc(list.Items[i].OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner }) {
				m := list.Items[i].DeepCopy()
				m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind))) // Caches may drop it.
				owned = append(owned, m)
			}
		}
	}
	return owned, nil
}

// Ref returns how ClusterResourceSets refer to the object with this metadata.
func Ref(m *metav1.PartialObjectMetadata) addonsv1.ResourceRef {
	return addonsv1.ResourceRef{Kind: m.Kind, Name: m.Name}
}

// Hash returns the hash of the content, or an UnavailableError. It only reads from the API server if the content may have changed.
func (r *Reader) Hash(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (string, error) {
	m, err := r.Cached(ctx, namespace, ref)
	if err != nil {
		return "", err
	}
	if known, ok := r.hashes.Get(m.GetUID()); ok && known.(hashed).version == m.GetResourceVersion() {
		return known.(hashed).hash, nil
	}
	c, err := r.Read(ctx, namespace, ref)
	return c.Hash, err
}

// Recent is Read for contents that are read again when they change: when one changes, many Clusters need it at the same time, and share
// what was read of the version in the cache. It must not be modified.
func (r *Reader) Recent(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (Content, error) {
	if m, err := r.Cached(ctx, namespace, ref); err == nil {
		if known, ok := r.recent.Get(m.GetUID()); ok && known.(versioned).version == m.GetResourceVersion() {
			return known.(versioned).Content, nil
		}
	}
	return r.Read(ctx, namespace, ref)
}

// Read returns the content, or an UnavailableError.
func (r *Reader) Read(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (Content, error) {
	obj, data, err := r.get(ctx, namespace, ref)
	if err != nil {
		return Content{}, err
	}
	c := Content{Data: data, Hash: manifest.Hash(data)}
	r.hashes.Add(obj.GetUID(), hashed{version: obj.GetResourceVersion(), hash: c.Hash})
	r.recent.Add(obj.GetUID(), versioned{Content: c, version: obj.GetResourceVersion()})
	return c, nil
}

// get reads an object from the API server.
func (r *Reader) get(ctx context.Context, namespace string, ref addonsv1.ResourceRef) (client.Object, map[string][]byte, error) {
	key := client.ObjectKey{Namespace: namespace, Name: ref.Name}
	config, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	isSecret := ref.Kind == string(addonsv1.SecretClusterResourceSetResourceKind)
	var obj client.Object = config
	if isSecret {
		obj = secret
	}
	if err := r.live.Get(ctx, key, obj); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil, &UnavailableError{Ref: ref}
		}
		return nil, nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	if isSecret {
		if secret.Type != addonsv1.ClusterResourceSetSecretType {
			return nil, nil, &UnavailableError{Ref: ref, WrongType: true}
		}
		return secret, secret.Data, nil
	}
	data := make(map[string][]byte, len(config.Data))
	for name, value := range config.Data {
		data[name] = []byte(value)
	}
	return config, data, nil
}
