package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"sigs.k8s.io/cluster-api/packages/repository"
)

// parallelDownloads is how many files are downloaded concurrently.
const parallelDownloads = 8

// Download returns a published Release, with the files that the contract is about. A repository whose files cannot be listed, such
// as a GitLab package, only has its metadata and components. version, unless empty, is used instead of the one in the URL.
func Download(ctx context.Context, client *repository.Client, version string) (*Release, error) {
	if version == "" {
		var err error
		if version, err = client.DefaultVersion(ctx); err != nil {
			return nil, err
		}
	}
	published, err := client.Files(ctx, version)
	if errors.Is(err, errors.ErrUnsupported) {
		published, err = []string{repository.MetadataFile, client.ComponentsFile()}, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range published {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	files := map[string][]byte{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelDownloads)
	for _, name := range names {
		group.Go(func() error {
			raw, err := client.File(ctx, version, name)
			if errors.Is(err, repository.ErrNotFound) {
				return nil // Of the files that were not listed, the checks report what is missing.
			}
			mu.Lock()
			defer mu.Unlock()
			files[name] = raw
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &Release{
		Folder: strings.TrimSuffix(client.Folder(), "/"), Provider: client.Provider, Version: version,
		names: func() ([]string, error) { return names, nil },
		read:  func(name string) ([]byte, error) { return files[name], nil },
	}, nil
}
