package contract

import (
	"context"
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

// APIVersions finds the versions of providers' kinds that speak the v1beta1 contract. Providers state them in the label
// cluster.x-k8s.io/v1beta1 of their CustomResourceDefinitions.
type APIVersions struct {
	// Reader reads the metadata of CustomResourceDefinitions. Give it a client with a cache: every reconcile asks.
	Reader client.Reader
}

// Label is the label of a CustomResourceDefinition whose value lists, joined by underscores, the versions of its kind
// that speak the contract.
func Label() string { return clusterv1.GroupVersion.String() }

// NotInstalledError says that a kind has no CustomResourceDefinition: its provider is not installed, or not yet.
type NotInstalledError struct {
	// Kind is the kind, Definition the name of the CustomResourceDefinition.
	Kind       schema.GroupKind
	Definition string
}

// Error implements error.
func (e *NotInstalledError) Error() string {
	return fmt.Sprintf("%s: there is no CustomResourceDefinition %s: install the provider that has it", e.Kind, e.Definition)
}

// Newest is the newest version of kind that speaks the contract. The error says which CustomResourceDefinition or which
// label is missing, the former as a NotInstalledError; it is never a NotFound error, so that callers do not take it for a missing object.
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
		return schema.GroupVersionKind{}, fmt.Errorf(
			"%s: CustomResourceDefinition %s has no version in label %s: its provider does not support this version of Cluster API", kind, name, Label())
	}
	return kind.WithVersion(newest), nil
}

// Refresh sets ref's apiVersion to the newest one that speaks the contract, and says whether that changed it.
func (v APIVersions) Refresh(ctx context.Context, ref *corev1.ObjectReference) (bool, error) {
	newest, err := v.Newest(ctx, ref.GroupVersionKind().GroupKind())
	if err != nil {
		return false, err
	}
	changed := ref.APIVersion != newest.GroupVersion().String()
	ref.APIVersion = newest.GroupVersion().String()
	return changed, nil
}

// CRDName is the name that the contract gives to the CustomResourceDefinition of kind: the English plural of the kind
// in lower case, and the group.
func CRDName(kind schema.GroupKind) string {
	return flect.Pluralize(strings.ToLower(kind.Kind)) + "." + kind.Group
}

func newestOf(label string) string {
	return slices.MaxFunc(strings.Split(label, "_"), version.CompareKubeAwareVersionStrings)
}
