package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gobuffalo/flect"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Version is a version of the contract between Cluster API and its providers.
type Version string

// The supported versions of the contract. An empty Version counts as V1Beta1.
const (
	V1Beta1 Version = "v1beta1"
	V1Beta2 Version = "v1beta2"
)

// The labels of CustomResourceDefinitions, by contract.
const (
	labelV1Beta1 = "cluster.x-k8s.io/v1beta1"
	labelV1Beta2 = "cluster.x-k8s.io/v1beta2"
)

// Label returns the label of a CustomResourceDefinition with the versions of its kind that support the contract, separated by underscores.
func (v Version) Label() string {
	if v == V1Beta2 {
		return labelV1Beta2
	}
	return labelV1Beta1
}

// APIVersions finds the versions of provider kinds that support a version of the contract, which are in the labels
// cluster.x-k8s.io/v1beta2 and cluster.x-k8s.io/v1beta1 of their CustomResourceDefinitions.
type APIVersions struct {
	// Reader reads the metadata of CustomResourceDefinitions. It should have a cache: every reconcile reads it.
	Reader client.Reader
}

// NotInstalledError is the error for a kind without a CustomResourceDefinition: its provider is not installed.
type NotInstalledError struct {
	// Kind is the missing kind, Definition the name of its CustomResourceDefinition.
	Kind       schema.GroupKind
	Definition string
}

// Error implements error.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s: CustomResourceDefinition %s does not exist: install its provider", e.Kind, e.Definition)
}

// Newest returns the newest version of kind that supports the contract: V1Beta2 if the provider does, otherwise V1Beta1. If the
// CustomResourceDefinition does not exist, the error is a NotInstalledError, and not a NotFound error, so that callers do not mistake it
// for a missing object.
func (v APIVersions) Newest(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionKind, error) {
	newest, _, err := v.newest(ctx, kind)
	return newest, err
}

// newest is Newest, with the version of the contract that it supports.
func (v APIVersions) newest(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionKind, Version, error) {
	labels, err := v.labels(ctx, kind)
	if err != nil {
		return schema.GroupVersionKind{}, "", err
	}
	for _, contract := range []Version{V1Beta2, V1Beta1} {
		if listed := listedIn(labels, contract); len(listed) > 0 {
			return kind.WithVersion(slices.MaxFunc(listed, version.CompareKubeAwareVersionStrings)), contract, nil
		}
	}
	return schema.GroupVersionKind{}, "", Violated(
		"%s: CustomResourceDefinition %s has no version in label %s or %s: its provider does not support this version of Cluster API",
		kind, CRDName(kind), V1Beta2.Label(), V1Beta1.Label())
}

// Contract returns the version of the contract that a version of a kind supports: the newest one whose label lists it. A version that no
// label lists is of an older contract, and read as V1Beta1. The error is that of Newest.
func (v APIVersions) Contract(ctx context.Context, kind schema.GroupVersionKind) (Version, error) {
	labels, err := v.labels(ctx, kind.GroupKind())
	if err == nil && slices.Contains(listedIn(labels, V1Beta2), kind.Version) {
		return V1Beta2, nil
	}
	return V1Beta1, err
}

// Object returns u with the version of the contract that its apiVersion supports.
func (v APIVersions) Object(ctx context.Context, u *unstructured.Unstructured) (Object, error) {
	contract, err := v.Contract(ctx, u.GroupVersionKind())
	return Object{Unstructured: u, Contract: contract}, err
}

// labels returns the labels of the CustomResourceDefinition of a kind.
func (v APIVersions) labels(ctx context.Context, kind schema.GroupKind) (map[string]string, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	name := CRDName(kind)
	err := v.Reader.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return nil, &NotInstalledError{Kind: kind, Definition: name}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: reading CustomResourceDefinition %s: %w", kind, name, err)
	}
	return crd.Labels, nil
}

// listedIn returns the versions in the label of a version of the contract.
func listedIn(labels map[string]string, contract Version) []string {
	return slices.DeleteFunc(strings.Split(labels[contract.Label()], "_"), func(v string) bool { return v == "" })
}

// KindGone reports whether err is a NotInstalledError that the API server confirms: a cache may be stale. Then nothing of that kind exists.
// Otherwise it returns an error, unless err is nil.
func KindGone(ctx context.Context, live client.Reader, err error) (bool, error) {
	var missing *NotInstalledError
	if !errors.As(err, &missing) {
		return false, err
	}
	_, confirmed := APIVersions{Reader: live}.Newest(ctx, missing.Kind)
	switch {
	case errors.As(confirmed, &missing):
		return true, nil
	case confirmed != nil:
		return false, confirmed
	}
	return false, err
}

// Reference returns a reference with the newest version that supports the contract. The error is that of Newest.
func (v APIVersions) Reference(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string,
) (*corev1.ObjectReference, error) {
	kind, err := v.Newest(ctx, ref.GroupKind())
	if err != nil {
		return nil, err
	}
	return &corev1.ObjectReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: namespace, Name: ref.Name,
	}, nil
}

// Refresh sets ref's apiVersion to the newest version that supports the contract, and reports whether that changed it.
func (v APIVersions) Refresh(ctx context.Context, ref *corev1.ObjectReference) (bool, error) {
	newest, err := v.Newest(ctx, ref.GroupVersionKind().GroupKind())
	if err != nil {
		return false, err
	}
	changed := ref.APIVersion != newest.GroupVersion().String()
	ref.APIVersion = newest.GroupVersion().String()
	return changed, nil
}

// CRDName returns the name that the contract requires of the CustomResourceDefinition of a kind: the plural of the kind in lower case,
// and the group.
func CRDName(kind schema.GroupKind) string {
	return flect.Pluralize(strings.ToLower(kind.Kind)) + "." + kind.Group
}
