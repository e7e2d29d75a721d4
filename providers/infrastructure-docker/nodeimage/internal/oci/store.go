package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/content/local"
	"github.com/containerd/containerd/errdefs"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/namespaces"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	bolt "go.etcd.io/bbolt"
)

// Namespace is where kubelet finds images.
const Namespace = "k8s.io"

// Folders of containerd's plugins, in its data folder.
const (
	contentDir  = "io.containerd.content.v1.content"
	metadataDir = "io.containerd.metadata.v1.bolt"
)

// WriteStore writes images by name into a new data folder of containerd. The same images and time give the same files.
func WriteStore(ctx context.Context, dir string, byName map[string]v1.Image, created time.Time) error {
	if err := os.MkdirAll(filepath.Join(dir, metadataDir), 0o711); err != nil {
		return err
	}
	blobs, err := local.NewStore(filepath.Join(dir, contentDir))
	if err != nil {
		return fmt.Errorf("cannot create a content store: %w", err)
	}
	path := filepath.Join(dir, metadataDir, "meta.db")
	file, err := bolt.Open(path+".new", 0o644, &bolt.Options{NoSync: true})
	if err != nil {
		return fmt.Errorf("cannot create a metadata database: %w", err)
	}
	ctx = namespaces.WithNamespace(ctx, Namespace)
	database := metadata.NewDB(file, blobs, nil)
	if err = database.Init(ctx); err == nil {
		err = writeImages(ctx, database, byName)
	}
	if err == nil {
		err = copyDatabase(path, file, created)
	}
	return errors.Join(err, file.Close(), os.Remove(path+".new"))
}

func writeImages(ctx context.Context, database *metadata.DB, byName map[string]v1.Image) error {
	store := metadata.NewImageStore(database)
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		target, err := writeContent(ctx, database.ContentStore(), byName[name])
		if err != nil {
			return fmt.Errorf("cannot write the content of image %s: %w", name, err)
		}
		if _, err := store.Create(ctx, images.Image{Name: name, Target: target}); err != nil {
			return fmt.Errorf("cannot write image %s: %w", name, err)
		}
	}
	return nil
}

// writeContent writes the blobs of an image, with labels that protect them from garbage collection while the image exists.
func writeContent(ctx context.Context, blobs content.Store, image v1.Image) (ocispec.Descriptor, error) {
	layers, err := image.Layers()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	for _, layer := range layers {
		hash, err := layer.Digest()
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		reader, err := layer.Compressed()
		if err != nil {
			return ocispec.Descriptor{}, err
		}
		err = errors.Join(writeBlob(ctx, blobs, hash, reader), reader.Close())
		if err != nil {
			return ocispec.Descriptor{}, err
		}
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	hash, err := image.ConfigName()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := writeBlob(ctx, blobs, hash, bytes.NewReader(config)); err != nil {
		return ocispec.Descriptor{}, err
	}
	return writeManifest(ctx, blobs, image)
}

func writeManifest(ctx context.Context, blobs content.Store, image v1.Image) (ocispec.Descriptor, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	mediaType, err := image.MediaType()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	hash, err := image.Digest()
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	if err := writeBlob(ctx, blobs, hash, bytes.NewReader(manifest)); err != nil {
		return ocispec.Descriptor{}, err
	}
	target := ocispec.Descriptor{MediaType: string(mediaType), Digest: digest.Digest(hash.String()), Size: int64(len(manifest))}
	label := images.SetChildrenLabels(blobs, images.ChildrenHandler(blobs))
	_, err = label(ctx, target)
	return target, err
}

// writeBlob writes a blob unless the store has it, because images share layers.
func writeBlob(ctx context.Context, blobs content.Store, hash v1.Hash, from io.Reader) error {
	expected := ocispec.Descriptor{Digest: digest.Digest(hash.String())}
	err := content.WriteBlob(ctx, blobs, hash.String(), from, expected)
	if errdefs.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// copyDatabase writes a database with the content of another, in the order of its keys, and with one time for everything. Each key
// is a transaction: bolt writes the buckets that a transaction has changed in random order.
func copyDatabase(path string, from *bolt.DB, created time.Time) error {
	at, err := created.UTC().MarshalBinary()
	if err != nil {
		return err
	}
	err = from.Update(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bolt.Bucket) error { return setTimes(bucket, at) })
	})
	if err != nil {
		return fmt.Errorf("cannot set times in the metadata database: %w", err)
	}
	to, err := bolt.Open(path, 0o644, &bolt.Options{NoSync: true})
	if err != nil {
		return err
	}
	return errors.Join(bolt.Compact(to, from, 1), to.Close())
}

// setTimes sets the times in a bucket and those below it.
func setTimes(bucket *bolt.Bucket, at []byte) error {
	var times [][]byte
	err := bucket.ForEach(func(key, value []byte) error {
		switch {
		case value == nil:
			return setTimes(bucket.Bucket(key), at)
		case string(key) == "createdat" || string(key) == "updatedat":
			times = append(times, bytes.Clone(key))
		}
		return nil
	})
	for _, key := range times {
		err = errors.Join(err, bucket.Put(key, at))
	}
	return err
}
