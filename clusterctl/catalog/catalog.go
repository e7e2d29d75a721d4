// Package catalog finds what a user asks for by provider name: the provider's configuration, its repository, and its
// components as this user's configuration makes them.
//
// Nothing here reads or writes a cluster.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/clusterctl/config"
	"sigs.k8s.io/cluster-api/internal/distribution"
	"sigs.k8s.io/cluster-api/internal/distribution/components"
	"sigs.k8s.io/cluster-api/internal/distribution/repository"
)

// shownVersions is how many versions an error proposes.
const shownVersions = 5

// Catalog joins configuration and repositories.
type Catalog struct {
	Config *config.Config
	Store  *repository.Store
}

// Release is one version of a provider in its repository.
type Release struct {
	*repository.Client
	Version string
}

// Options says how to make components.
type Options struct {
	// TargetNamespace is empty for the provider's own.
	TargetNamespace string
	// Raw leaves variables as they are.
	Raw bool
}

// Release finds a version of a provider; without a version in the reference, the one its repository names.
func (c *Catalog) Release(ctx context.Context, t clusterctlv1.ProviderType, ref distribution.Ref) (*Release, error) {
	p, err := distribution.Find(c.Config.Providers, t, ref.Name)
	if err != nil {
		return nil, err
	}
	client, err := c.Store.Open(p)
	if err != nil {
		return nil, err
	}
	version := ref.Version
	if version == "" {
		if version, err = client.DefaultVersion(ctx); errors.Is(err, repository.ErrNotFound) {
			return nil, fmt.Errorf("%w: look at what is published there, or correct the provider's url (%s) in the clusterctl configuration", err, p.URL)
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

// Validate checks what the release's metadata says: its version must belong to a series of this project's contract.
func (r *Release) Validate(ctx context.Context) error {
	contract, err := r.Contract(ctx, r.Version)
	if err != nil {
		return r.explain(ctx, err)
	}
	if contract != distribution.Contract {
		return fmt.Errorf("%s %s is made for contract %s, but this clusterctl works with %s: choose another version with %s:{version}",
			r.Provider.ManifestLabel(), r.Version, contract, distribution.Contract, r.Provider.Name)
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

// explain adds the versions there are to an error about a version that is not there.
func (r *Release) explain(ctx context.Context, err error) error {
	if !errors.Is(err, repository.ErrNotFound) {
		return err
	}
	versions, listErr := r.Versions(ctx)
	if listErr != nil || len(versions) == 0 || slices.Contains(versions, r.Version) {
		return err
	}
	return fmt.Errorf("%s has no version %s; the newest ones are %s: %w",
		r.Provider.ManifestLabel(), r.Version, strings.Join(versions[:min(len(versions), shownVersions)], ", "), err)
}
