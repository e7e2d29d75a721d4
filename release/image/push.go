package image

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push pushes everything in a layout that has a name: the index, signatures and attestations. Credentials are those of
// "docker login".
func Push(ctx context.Context, path layout.Path) error {
	root, err := path.ImageIndex()
	if err != nil {
		return err
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, descriptor := range manifest.Manifests {
		tag, err := name.NewTag(descriptor.Annotations[RefName])
		if err != nil {
			return fmt.Errorf("an image in %s has no name: %w", path, err)
		}
		if descriptor.MediaType.IsIndex() {
			index, err := root.ImageIndex(descriptor.Digest)
			if err != nil {
				return err
			}
			err = remote.WriteIndex(tag, index, options...)
			if err != nil {
				return fmt.Errorf("cannot push %s: %w", tag, err)
			}
			continue
		}
		image, err := root.Image(descriptor.Digest)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, image, options...); err != nil {
			return fmt.Errorf("cannot push %s: %w", tag, err)
		}
	}
	return nil
}
