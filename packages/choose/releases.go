package choose

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"sigs.k8s.io/cluster-api/packages"
	"sigs.k8s.io/cluster-api/packages/catalog"
	"sigs.k8s.io/cluster-api/packages/inventory"
	"sigs.k8s.io/cluster-api/packages/repository"
)

// parallelReads is how many repositories are read concurrently.
const parallelReads = 4

// ReadReleases returns the releases of all installed providers, by manifest label.
func ReadReleases(ctx context.Context, c *catalog.Catalog, installed inventory.Inventory) (map[string]Releases, error) {
	list := make([]Releases, len(installed))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelReads)
	for i := range installed {
		group.Go(func() error {
			p, err := packages.Find(c.Config.Providers, installed[i].GetProviderType(), installed[i].ProviderName)
			if err != nil {
				return err
			}
			client, err := c.Store.Open(p)
			if err != nil {
				return err
			}
			list[i], err = readOne(groupCtx, client)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	releases := map[string]Releases{}
	for i := range installed {
		releases[installed[i].ManifestLabel()] = list[i]
	}
	return releases, nil
}

// readOne reads one repository.
func readOne(ctx context.Context, client *repository.Client) (Releases, error) {
	versions, err := client.Versions(ctx)
	if err != nil {
		return Releases{}, err
	}
	if len(versions) == 0 {
		return Releases{}, fmt.Errorf("%s has no version of %s: correct the provider's url in the clusterctl configuration",
			client.Folder(), client.Provider.ManifestLabel())
	}
	metadata, err := client.Metadata(ctx, latest(versions))
	return Releases{Versions: versions, Metadata: metadata}, err
}

// latest returns the highest version, pre-releases included: its metadata knows all series. versions are valid.
func latest(versions []string) string {
	best := versions[0]
	for _, text := range versions[1:] {
		a, errA := packages.ParseVersion(text)
		b, errB := packages.ParseVersion(best)
		if errA == nil && errB == nil && a.GT(b) {
			best = text
		}
	}
	return best
}
