// Package catalog looks up providers by name: their configuration, their repository, and their components with the user's
// configuration applied.
//
// It does not access clusters.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/components"
	"sigs.k8s.io/cluster-api/packages/config"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// shownVersions is how many versions an error suggests.
const shownVersions = 5

// Catalog combines configuration and repositories.
type Catalog struct {
	Config *config.Config
	Store  *repository.Store
	// Contracts are those that default versions may implement. Empty: all that this project supports.
	Contracts []string
}

// Release is one version of a provider in its repository.
type Release struct {
	*repository.Client
	Version string
}

// Options are how to generate components.
type Options struct {
	// TargetNamespace is empty for the provider's default.
	TargetNamespace string
	// Raw keeps variables unreplaced.
	Raw bool
}

// Release finds a version of a provider; without a version in the reference, the repository's default.
func (c *Catalog) Release(ctx context.Context, t clusterctlv1.ProviderType, ref packages.Ref) (*Release, error) {
	p, err := packages.Find(c.Config.Providers, t, ref.Name)
	if err != nil {
		return nil, err
	}
	client, err := c.Store.Open(p)
	if err != nil {
		return nil, err
	}
	client.Contracts = c.Contracts
	version := ref.Version
	if version == "" {
		if version, err = client.DefaultVersion(ctx); errors.Is(err, repository.ErrNotFound) {
			return nil, fmt.Errorf("%w: check the published versions, or correct the provider's url (%s) in the clusterctl configuration",
				err, p.URL)
		} else if err != nil {
			return nil, err
		}
	}
	return &Release{Client: client, Version: version}, nil
}

// Components downloads and processes the release's manifests.
func (c *Catalog) Components(ctx context.Context, r *Release, o Options) (*components.Components, error) {
	raw, err := r.File(ctx, r.Version, r.ComponentsFile())
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	options := components.Options{Version: r.Version, TargetNamespace: o.TargetNamespace, Images: c.Config.Images}
	if !o.Raw {
		options.Variables = c.Config.Variable
	}
	return components.New(r.Provider, raw, options)
}

// Validate checks that, according to its metadata, the release implements a contract that this project supports.
func (r *Release) Validate(ctx context.Context) error {
	contract, err := r.Contract(ctx, r.Version)
	if err != nil {
		return r.explain(ctx, err)
	}
	if !slices.Contains(packages.Contracts(), contract) {
		return fmt.Errorf("%s %s implements contract %s, but this clusterctl supports %s: choose another version with %s:{version}",
			r.Provider.ManifestLabel(), r.Version, contract, packages.JoinContracts(packages.Contracts()), r.Provider.Name)
	}
	return nil
}

// Read returns a file of the release.
func (r *Release) Read(ctx context.Context, name string) ([]byte, error) {
	raw, err := r.File(ctx, r.Version, name)
	if err != nil {
		return nil, r.explain(ctx, err)
	}
	return raw, nil
}

// explain adds the available versions to an error about a version that is not found.
func (r *Release) explain(ctx context.Context, err error) error {
	if !errors.Is(err, repository.ErrNotFound) {
		return err
	}
	versions, listErr := r.Versions(ctx)
	if listErr != nil || len(versions) == 0 || slices.Contains(versions, r.Version) {
		return err
	}
	return fmt.Errorf("%s has no version %s; the latest versions are %s: %w",
		r.Provider.ManifestLabel(), r.Version, strings.Join(versions[:min(len(versions), shownVersions)], ", "), err)
}
