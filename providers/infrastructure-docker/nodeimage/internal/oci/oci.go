// Package oci makes container images from file trees, loads them into Docker, through its command line, and puts them into a data
// folder of containerd, without a running containerd, so that nodes neither pull nor import them. Images only depend on the
// trees and the configuration.
package oci

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/compression"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
)

// Modified is the time of all files and images, a constant so that builds are reproducible.
var Modified = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Layers writes layers into a folder.
type Layers struct{ Dir string }

// Plain returns a layer that is not compressed, for images that are loaded into an engine on the same machine.
func (l Layers) Plain(name string, tree *filetree.Tree) (v1.Layer, error) {
	path, err := l.write(name, tree)
	if err != nil {
		return nil, err
	}
	return newPlain(path)
}

// Compressed returns a layer that is compressed with zstd, for images inside of other images.
func (l Layers) Compressed(name string, tree *filetree.Tree) (v1.Layer, error) {
	path, err := l.write(name, tree)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(path, tarball.WithCompression(compression.ZStd),
		tarball.WithMediaType(types.OCILayerZStd), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("cannot compress layer %s: %w", name, err)
	}
	return layer, nil
}

func (l Layers) write(name string, tree *filetree.Tree) (string, error) {
	path := filepath.Join(l.Dir, name+".tar")
	file, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("cannot write layer %s: %w", name, err)
	}
	if err := errors.Join(tree.Write(file, Modified), file.Close()); err != nil {
		return "", fmt.Errorf("layer %s: %w", name, err)
	}
	return path, nil
}

// Image returns an image of this machine's architecture.
func Image(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.AppendLayers(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("cannot add layers: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Created, file.Config = runtime.GOARCH, "linux", v1.Time{Time: Modified}, config
	return mutate.ConfigFile(image, file)
}

// plain is a layer in a tar archive.
type plain struct {
	path   string
	digest v1.Hash
	size   int64
}

func newPlain(path string) (plain, error) {
	file, err := os.Open(path)
	if err != nil {
		return plain{}, err
	}
	digest, size, err := v1.SHA256(file)
	return plain{path: path, digest: digest, size: size}, errors.Join(err, file.Close())
}

// Digest implements v1.Layer.
func (l plain) Digest() (v1.Hash, error) { return l.digest, nil }

// DiffID implements v1.Layer.
func (l plain) DiffID() (v1.Hash, error) { return l.digest, nil }

// Size implements v1.Layer.
func (l plain) Size() (int64, error) { return l.size, nil }

// MediaType implements v1.Layer.
func (l plain) MediaType() (types.MediaType, error) { return types.OCIUncompressedLayer, nil }

// Compressed implements v1.Layer.
func (l plain) Compressed() (io.ReadCloser, error) { return os.Open(l.path) }

// Uncompressed implements v1.Layer.
func (l plain) Uncompressed() (io.ReadCloser, error) { return os.Open(l.path) }
