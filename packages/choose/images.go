package choose

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/certmanager"
	"sigs.k8s.io/cluster-api/packages/inventory"
)

// Images returns the sorted and unique images that an installation would need. Without a cluster (p.Client is nil) it
// assumes an empty one. Variables need no values.
func (p *InstallPlanner) Images(ctx context.Context, o InstallOptions) ([]string, error) {
	var installed inventory.Inventory
	if p.Client != nil {
		var err error
		if installed, err = inventory.Read(ctx, p.Client); err != nil {
			return nil, err
		}
	}
	items, err := o.Selection.Items(FirstRun(installed))
	if err != nil {
		return nil, err
	}
	var images []string
	needy := false
	for _, item := range items {
		release, err := p.Catalog.Release(ctx, item.Type, item.Ref)
		if err != nil {
			return nil, err
		}
		c, err := p.Catalog.Components(ctx, release, catalog.Options{TargetNamespace: o.TargetNamespace, Raw: true})
		if err != nil {
			return nil, err
		}
		images = append(images, c.Images...)
		needy = needy || c.NeedsCertManager()
	}
	if needy {
		more, err := p.certManagerImages(ctx)
		if err != nil {
			return nil, err
		}
		images = append(images, more...)
	}
	slices.Sort(images)
	return slices.Compact(images), nil
}

func (p *InstallPlanner) certManagerImages(ctx context.Context) ([]string, error) {
	if p.Client != nil {
		err := p.Client.Get(ctx, client.ObjectKey{Name: certmanager.Namespace}, &corev1.Namespace{})
		if !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	_, images, err := certmanager.Manifests(ctx, p.Catalog.Store, p.Catalog.Config)
	return images, err
}
