package remove

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/packages/live"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// User returns an object that belongs to a Cluster and whose kind is defined by one of a provider's objects, described, or "" if there is
// none: the Cluster could no longer be deleted without the provider. Objects that belong to none, such as templates, survive with their
// definitions.
func User(ctx context.Context, c client.Reader, objects []unstructured.Unstructured) (string, error) {
	for i := range objects {
		if objects[i].GetKind() != manifest.KindCRD {
			continue
		}
		user, err := userOf(ctx, c, &objects[i])
		if user != "" || err != nil {
			return user, err
		}
	}
	return "", nil
}

func userOf(ctx context.Context, c client.Reader, crd *unstructured.Unstructured) (string, error) {
	kind := live.Defines(crd)
	versions := storageversion.Stored(crd)
	if len(versions) == 0 {
		return "", nil
	}
	options := []client.ListOption{client.Limit(1)}
	if kind.Group != clusterv1.GroupVersion.Group || kind.Kind != clusterv1.ClusterKind {
		options = append(options, client.HasLabels{clusterv1.ClusterNameLabel})
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.WithVersion(versions[len(versions)-1]))
	list.Kind += "List"
	err := c.List(ctx, list, options...)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
	case len(list.Items) == 0:
		return "", nil
	}
	return fmt.Sprintf("%s %s", kind.Kind, client.ObjectKeyFromObject(&list.Items[0])), nil
}
