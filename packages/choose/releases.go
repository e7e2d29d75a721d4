package choose

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	clusterctlv1 "sigs.k8s.io/cluster-api/api/clusterctl/v1alpha3"
	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// parallelReads is how many repositories are read concurrently.
const parallelReads = 4

// ReadReleases returns the releases of all installed providers, by manifest label. What cannot be read is an error of that provider's
// Releases alone.
func ReadReleases(ctx context.Context, c *catalog.Catalog, installed inventory.Inventory) (map[string]Releases, error) {
	list := make([]Releases, len(installed))
	group := errgroup.Group{}
	group.SetLimit(parallelReads)
	for i := range installed {
		group.Go(func() error {
			list[i] = readOne(ctx, c, &installed[i])
			return nil
		})
	}
	_ = group.Wait() // None returns an error.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	releases := map[string]Releases{}
	for i := range installed {
		releases[installed[i].ManifestLabel()] = list[i]
	}
	return releases, nil
}

// readOne reads one repository.
func readOne(ctx context.Context, c *catalog.Catalog, installed *clusterctlv1.Provider) Releases {
	p, err := packages.Find(c.Config.Providers, installed.GetProviderType(), installed.ProviderName)
	if err != nil {
		return Releases{Err: err}
	}
	client, err := c.Store.Open(p)
	if err != nil {
		return Releases{Err: err}
	}
	versions, err := client.Versions(ctx)
	if err == nil && len(versions) == 0 {
		err = fmt.Errorf("%s has no version of %s: correct the provider's url in the clusterctl configuration",
			client.Folder(), p.ManifestLabel())
	}
	if err != nil {
		return Releases{Err: err}
	}
	metadata, version, err := client.LatestMetadata(ctx, versions)
	if err != nil {
		return Releases{Err: err}
	}
	r := Releases{Versions: versions, Metadata: metadata, MetadataVersion: version}
	r.Override = client.OverridePath(version, repository.MetadataFile)
	r.Versions = published(ctx, client, r, installed.Version)
	return r
}

// published returns the versions of a repository without those that cannot be installed, as far as they could be proposed: tags are
// listed before their files exist, and some never get files. Those after the version with the latest metadata have been tried.
func published(ctx context.Context, client *repository.Client, r Releases, installed string) []string {
	last, err := packages.ParseVersion(r.MetadataVersion)
	if err != nil {
		return r.Versions
	}
	r.Versions = slices.DeleteFunc(slices.Clone(r.Versions), func(text string) bool {
		v, err := packages.ParseVersion(text)
		return err == nil && v.GT(last)
	})
	list, _, err := newer(&clusterctlv1.Provider{Version: installed}, r)
	if err != nil {
		return r.Versions
	}
	checked := map[string]bool{}
	for _, c := range slices.Backward(list[1:]) {
		if checked[c.contract] || len(c.version.Pre) > 0 {
			continue
		}
		if c.text != r.MetadataVersion {
			if _, err := client.Metadata(ctx, c.text); errors.Is(err, repository.ErrNotFound) {
				r.Versions = slices.DeleteFunc(r.Versions, func(text string) bool { return text == c.text })
				continue
			}
		}
		checked[c.contract] = true
	}
	return r.Versions
}
