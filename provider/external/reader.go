package external

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/provider/contract"
)

// Reader gets what references name.
type Reader struct {
	// Client reads unstructured objects from the manager's cache.
	Client client.Reader
	// Versions decides at which version Get reads an object, whatever its reference says.
	Versions contract.APIVersions
}

// Get returns the object that ref names in namespace, at the newest version of its kind that speaks the contract. A
// namespace in ref itself does not count: references never leave the namespace of the object that holds them. ref is
// not changed; the result's apiVersion is what it should say.
//
// The error is a NotFound error (see apierrors.IsNotFound) if and only if the object does not exist; a missing kind is
// another error. The result belongs to the caller.
func (r Reader) Get(ctx context.Context, ref *corev1.ObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if ref == nil || ref.Kind == "" || ref.Name == "" {
		return nil, errors.New("a reference has no kind or no name: there is nothing to get")
	}
	kind, err := r.Versions.Newest(ctx, ref.GroupVersionKind().GroupKind())
	if err != nil {
		return nil, err
	}
	return r.get(ctx, kind, namespace, ref.Name)
}

// Exact is Get at the version that ref names, for who depends on what the fields of that version are. A kind that is
// not served at that version is an error.
func (r Reader) Exact(ctx context.Context, ref *corev1.ObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if ref == nil || ref.Kind == "" || ref.Name == "" {
		return nil, errors.New("a reference has no kind or no name: there is nothing to get")
	}
	kind := ref.GroupVersionKind()
	newest, err := r.Versions.Newest(ctx, kind.GroupKind())
	if err != nil {
		return nil, err
	}
	obj, err := r.get(ctx, kind, namespace, ref.Name)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s is not served in version %s: refer to it in version %s: %w", kind.Kind, kind.Version, newest.Version, err)
	}
	return obj, err
}

func (r Reader) get(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		return nil, fmt.Errorf("getting %s %s/%s: %w", kind.Kind, namespace, name, err)
	}
	return obj, nil
}
