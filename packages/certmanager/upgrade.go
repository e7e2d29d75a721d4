package certmanager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// PrepareUpgrade is Prepare, except that a cert-manager that clusterctl manages is replaced if it is outdated.
func PrepareUpgrade(ctx context.Context, c client.Client, store *repository.Store, conf *config.Config) (*Plan, error) {
	installed, err := Installed(ctx, c)
	if err != nil {
		return nil, err
	}
	if installed == "" || !Outdated(installed, conf.CertManager.Version) {
		return Prepare(ctx, c, store, conf)
	}
	plan := &Plan{Version: conf.CertManager.Version, timeout: conf.CertManager.Timeout, poll: pollInterval}
	if plan.objects, _, err = Manifests(ctx, store, conf); err != nil {
		return nil, err
	}
	plan.migrations, err = migrations(ctx, c, plan.objects)
	return plan, err
}

// migrations returns what has to be stored again before the CustomResourceDefinitions among objects can be written.
func migrations(ctx context.Context, c client.Reader, objects []unstructured.Unstructured) ([]*storageversion.Migration, error) {
	var list []*storageversion.Migration
	for i := range objects {
		if objects[i].GetKind() != manifest.KindCRD {
			continue
		}
		live := manifest.Identity(&objects[i])
		err := c.Get(ctx, client.ObjectKeyFromObject(live), live)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read %s of cert-manager: %w", manifest.Describe(live), err)
		}
		if err != nil {
			continue
		}
		m, err := storageversion.Plan(live, &objects[i])
		if err != nil {
			return nil, fmt.Errorf("cert-manager: %w", err)
		}
		if m != nil {
			list = append(list, m)
		}
	}
	return list, nil
}
