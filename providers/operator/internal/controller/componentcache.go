package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/manifest"
)

// CachedKinds returns the kinds in the cache: those of which nearly all providers have objects, except Deployments, whose status is
// needed, too. Changes of other kinds are found when something else changes.
func CachedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		apiextensionsv1.SchemeGroupVersion.WithKind(manifest.KindCRD),
	}
}

// CachedMetadata returns an empty object of a kind.
func CachedMetadata(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(kind)
	return m
}

// Lean removes the metadata that is not read, for caches.
func Lean(in any) (any, error) {
	if m, ok := in.(*metav1.PartialObjectMetadata); ok {
		m.Annotations, m.ManagedFields, m.Finalizers, m.OwnerReferences = nil, nil, nil, nil
	}
	return in, nil
}

// componentState identifies, for each kind, the objects of a provider and their contents, without the status if the kind has a generation.
type componentState map[schema.GroupVersionKind]string

// Changed returns the kinds that differ, in the order of CachedKinds.
func (s componentState) Changed(before componentState) []schema.GroupVersionKind {
	return slices.DeleteFunc(CachedKinds(), func(kind schema.GroupVersionKind) bool { return s[kind] == before[kind] })
}

// componentStateOf returns the state of the objects with a provider label.
func componentStateOf(ctx context.Context, cached client.Reader, label string) (componentState, error) {
	s := componentState{}
	for _, kind := range CachedKinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := cached.List(ctx, list, client.MatchingLabels{clusterv1.ProviderNameLabel: label}); err != nil {
			return nil, fmt.Errorf("listing the %ss of %s: %w", kind.Kind, label, err)
		}
		var parts []string
		for i := range list.Items {
			m := &list.Items[i]
			version := m.ResourceVersion
			if m.Generation > 0 {
				version = fmt.Sprint(m.Generation)
			}
			parts = append(parts, strings.Join([]string{m.Namespace, m.Name, string(m.UID), version}, " "))
		}
		slices.Sort(parts)
		s[kind] = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(parts, "\n"))))
	}
	return s, nil
}

// componentOwners returns a function that returns the provider label of an object, "" if it is not of a kind in the cache, or of no
// provider.
func componentOwners(ctx context.Context, cached client.Reader) func(manifest.Key) string {
	return func(k manifest.Key) string {
		i := slices.IndexFunc(CachedKinds(), func(kind schema.GroupVersionKind) bool { return kind.GroupKind() == k.GroupKind })
		if i < 0 {
			return ""
		}
		m := CachedMetadata(CachedKinds()[i])
		if err := cached.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name}, m); err != nil {
			return "" // It does not exist, or is not of a provider: the cache has no others.
		}
		return m.Labels[clusterv1.ProviderNameLabel]
	}
}
