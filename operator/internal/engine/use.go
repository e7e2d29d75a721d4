package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	"sigs.k8s.io/cluster-api/internal/distribution/installed"
	"sigs.k8s.io/cluster-api/internal/distribution/manifest"
	"sigs.k8s.io/cluster-api/internal/distribution/storageversion"
)

// User returns an object of a kind of the provider that belongs to a Cluster, described, or "" if there is none: the Cluster could not be
// deleted any more without the provider. Objects that belong to none, such as templates, survive with their definitions.
func (e *Engine) User(ctx context.Context, t clusterctlv1.ProviderType, name string) (string, error) {
	found, err := (&installed.Finder{Client: e.Client, Resources: e.Resources}).Find(ctx)
	if err != nil {
		return "", err
	}
	for _, o := range found[clusterctlv1.ManifestLabel(name, t)] {
		if o.GetKind() != manifest.KindCRD {
			continue
		}
		user, err := e.userOf(ctx, &o)
		if user != "" || err != nil {
			return user, err
		}
	}
	return "", nil
}

func (e *Engine) userOf(ctx context.Context, crd *unstructured.Unstructured) (string, error) {
	kind := installed.Defines(crd)
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
	err := e.Client.List(ctx, list, options...)
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
