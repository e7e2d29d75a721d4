package certmanager

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/manifest"
	"sigs.k8s.io/cluster-api/packages/repository"
	"sigs.k8s.io/cluster-api/packages/storageversion"
)

// Upgrade is what an upgrade does to the cert-manager that clusterctl manages.
type Upgrade struct {
	// Installed is its version, "" if there is none; Wanted is that of the configuration.
	Installed, Wanted string
	// Images are those that replace others of the same version.
	Images []string
	// Unchecked is why the images could not be compared, or nil.
	Unchecked error
}

// Due reports whether cert-manager is replaced.
func (u *Upgrade) Due() bool {
	return u.Installed != "" && (Outdated(u.Installed, u.Wanted) || len(u.Images) > 0)
}

// CheckUpgrade returns what an upgrade does to cert-manager. Images are compared if the version is the same: they depend on the
// configuration.
func CheckUpgrade(ctx context.Context, c client.Reader, store *repository.Store, conf *config.Config) (*Upgrade, error) {
	installed, err := Installed(ctx, c)
	if err != nil {
		return nil, err
	}
	u := &Upgrade{Installed: installed, Wanted: conf.CertManager.Version}
	if installed != u.Wanted {
		return u, nil
	}
	objects, _, err := Manifests(ctx, store, conf)
	if err != nil {
		u.Unchecked = err
		return u, nil
	}
	u.Images, err = newImages(ctx, c, objects)
	return u, err
}

// newImages returns the images of objects that the existing ones do not have. Objects that do not exist do not count: what works without
// them is not replaced.
func newImages(ctx context.Context, c client.Reader, objects []unstructured.Unstructured) ([]string, error) {
	var list []string
	for i := range objects {
		wanted, err := components.OverrideImages(objects[i:i+1], Name, nil)
		if err != nil || len(wanted) == 0 {
			continue // Manifests has checked them.
		}
		live := manifest.Identity(&objects[i])
		err = c.Get(ctx, client.ObjectKeyFromObject(live), live)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %s of cert-manager: %w", manifest.Describe(live), err)
		}
		have, err := components.OverrideImages([]unstructured.Unstructured{*live}, Name, nil)
		if err != nil {
			return nil, err
		}
		for _, image := range wanted {
			if !slices.Contains(have, image) && !slices.Contains(list, image) {
				list = append(list, image)
			}
		}
	}
	return list, nil
}

// PrepareUpgrade determines, without writing anything, what has to be done for cert-manager: that of clusterctl is replaced if that is due,
// and if the new versions need cert-manager, it has to be ready. It returns nil if there is nothing to do.
func PrepareUpgrade(ctx context.Context, c client.Client, store *repository.Store, conf *config.Config, needed bool) (*Plan, error) {
	u, err := CheckUpgrade(ctx, c, store, conf)
	if err != nil {
		return nil, err
	}
	if !u.Due() {
		if !needed {
			return nil, nil
		}
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
