package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Media types of OCI artifacts.
const (
	artifactType types.MediaType = "application/vnd.cluster-api.provider.v1+json"
	fileType     types.MediaType = "application/yaml"
)

// Publish writes files as an OCI artifact, as FromOCI reads it: to [http://]registry/repository:tag, or to the absolute path of an OCI
// layout with a tag, which is created. An artifact with the same tag is replaced. Credentials are variables as in FromOCI; without them,
// those of the user's container tools are used.
func Publish(
	ctx context.Context, reference string, files map[string][]byte, variables func(name string) string, transport http.RoundTripper,
) error {
	r := &oci{}
	folder, err := r.parse(reference, variables, transport)
	if err == nil && r.tag == "" {
		err = errors.New("it has no tag: add the version of the release, such as :v1.7.4")
	}
	if err != nil {
		return fmt.Errorf("invalid artifact %q: %w", reference, err)
	}
	artifact, err := artifactOf(files)
	if err == nil {
		err = r.store.write(ctx, r.tag, artifact)
	}
	if err != nil {
		return fmt.Errorf("cannot publish the artifact %s with tag %s: %w", folder, r.tag, err)
	}
	return nil
}

// artifactOf returns an artifact with a layer for each file, whose title is its name.
func artifactOf(files map[string][]byte) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), artifactType)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var err error
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: static.NewLayer(files[name], fileType), Annotations: map[string]string{titleAnnotation: name},
		})
		if err != nil {
			return nil, err
		}
	}
	return image, nil
}

// write implements artifacts.
func (r registryStore) write(ctx context.Context, tag string, image v1.Image) error {
	if r.credentials == authn.Anonymous {
		found, err := authn.DefaultKeychain.Resolve(r.repo)
		if err != nil {
			return err
		}
		r.credentials = found
	}
	return notInRegistry(remote.Write(r.repo.Tag(tag), image, r.options(ctx)...))
}

// write implements artifacts.
func (s layoutStore) write(_ context.Context, tag string, image v1.Image) error {
	path, err := layout.FromPath(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Clean(s.path), 0o750); err != nil {
			return err
		}
		path, err = layout.Write(s.path, empty.Index)
	}
	if err != nil {
		return err
	}
	return path.ReplaceImage(image, match.Name(tag), layout.WithAnnotations(map[string]string{refAnnotation: tag}))
}
