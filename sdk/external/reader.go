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

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/sdk/contract"
)

// Reader reads referenced objects.
type Reader struct {
	// Client reads unstructured objects from the manager's cache.
	Client client.Reader
	// Versions decides in which version Get reads an object, regardless of the version in the reference.
	Versions contract.APIVersions
}

// Get returns the referenced object in namespace, in the newest version of its kind that supports the contract.
//
// The error is a NotFound error (see apierrors.IsNotFound) only if the object does not exist; for a missing kind, it is another one. The
// result is a copy.
func (r Reader) Get(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string,
) (*unstructured.Unstructured, error) {
	if ref == nil || ref.Kind == "" || ref.Name == "" {
		return nil, errors.New("the reference has no kind or no name")
	}
	kind, err := r.Versions.Newest(ctx, ref.GroupKind())
	if err != nil {
		return nil, err
	}
	return r.get(ctx, kind, namespace, ref.Name)
}

// Object is Get, with the version of the contract that the object follows.
func (r Reader) Object(
	ctx context.Context, ref *clusterv1.ContractVersionedObjectReference, namespace string,
) (contract.Object, error) {
	obj, err := r.Get(ctx, ref, namespace)
	if err != nil {
		return contract.Object{}, err
	}
	return r.Versions.Object(ctx, obj)
}

// Exact is Get for a reference with a version, in that version, for callers that depend on the fields of that version. It returns an error
// if that version is not served.
func (r Reader) Exact(ctx context.Context, ref *corev1.ObjectReference, namespace string) (*unstructured.Unstructured, error) {
	if ref == nil || ref.Kind == "" || ref.Name == "" {
		return nil, errors.New("the reference has no kind or no name")
	}
	kind := ref.GroupVersionKind()
	newest, err := r.Versions.Newest(ctx, kind.GroupKind())
	if err != nil {
		return nil, err
	}
	obj, err := r.get(ctx, kind, namespace, ref.Name)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s is not served in version %s: change the reference to version %s: %w",
			kind.Kind, kind.Version, newest.Version, err)
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
