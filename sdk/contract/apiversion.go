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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
)

// APIVersions finds the versions of provider kinds that support the v1beta1 contract, which are in the label
// cluster.x-k8s.io/v1beta1 of their CustomResourceDefinitions.
type APIVersions struct {
	// Reader reads the metadata of CustomResourceDefinitions. It should have a cache: every reconcile reads it.
	Reader client.Reader
}

// Label returns the label of a CustomResourceDefinition with the versions that support the contract, separated by underscores.
func Label() string { return clusterv1.GroupVersion.String() }

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

// Newest returns the newest version of kind that supports the contract. If the CustomResourceDefinition does not exist, the error is a
// NotInstalledError, and not a NotFound error, so that callers do not mistake it for a missing object.
func (v APIVersions) Newest(ctx context.Context, kind schema.GroupKind) (schema.GroupVersionKind, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	name := CRDName(kind)
	err := v.Reader.Get(ctx, client.ObjectKey{Name: name}, crd)
	if apierrors.IsNotFound(err) {
		return schema.GroupVersionKind{}, &NotInstalledError{Kind: kind, Definition: name}
	}
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("%s: reading CustomResourceDefinition %s: %w", kind, name, err)
	}
	newest := newestOf(crd.Labels[Label()])
	if newest == "" {
		return schema.GroupVersionKind{}, Violated(
			"%s: CustomResourceDefinition %s has no version in label %s: its provider does not support this version of Cluster API",
			kind, name, Label())
	}
	return kind.WithVersion(newest), nil
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

func newestOf(label string) string {
	return slices.MaxFunc(strings.Split(label, "_"), version.CompareKubeAwareVersionStrings)
}
