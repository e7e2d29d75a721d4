package oci_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/containerd/content"
	"github.com/containerd/containerd/content/local"
	"github.com/containerd/containerd/images"
	"github.com/containerd/containerd/metadata"
	"github.com/containerd/containerd/namespaces"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1"
	bolt "go.etcd.io/bbolt"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/oci"
)

var created = time.Unix(1767225600, 0).UTC()

// testImages are images that share a layer: as many as need several pages of a database.
func testImages(t *testing.T) map[string]v1.Image {
	t.Helper()
	layers := oci.Layers{Dir: t.TempDir()}
	tree := filetree.New()
	tree.AddFile("shared", 0o644, []byte("shared"))
	shared, err := layers.Compressed("shared", tree)
	if err != nil {
		t.Fatal(err)
	}
	tree.AddFile("own", 0o644, []byte("own"))
	own, err := layers.Compressed("own", tree)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]v1.Image{}
	for i := range 20 {
		name, set := fmt.Sprintf("registry.example/image-%d:v1", i), []v1.Layer{shared, own}
		if out[name], err = oci.Image(v1.Config{Entrypoint: []string{"/" + name}}, set[:1+i%2]...); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// contents returns the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestStoreIsReproducible(t *testing.T) {
	one, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, other} {
		if err := oci.WriteStore(t.Context(), dir, testImages(t), created); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(contents(t, one), contents(t, other)); diff != "" {
		t.Error("the same images must give the same files")
	}
}

// The content is read like containerd does.
func TestWriteStore(t *testing.T) {
	dir, want := t.TempDir(), testImages(t)
	if err := oci.WriteStore(t.Context(), dir, want, created); err != nil {
		t.Fatal(err)
	}
	blobs, err := local.NewStore(filepath.Join(dir, "io.containerd.content.v1.content"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := bolt.Open(filepath.Join(dir, "io.containerd.metadata.v1.bolt", "meta.db"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	database := metadata.NewDB(file, blobs, nil)
	ctx := namespaces.WithNamespace(t.Context(), oci.Namespace)
	if err := database.Init(ctx); err != nil {
		t.Fatal(err)
	}
	// What no image refers to is collected.
	if _, err := database.GarbageCollect(ctx); err != nil {
		t.Fatal(err)
	}
	found, err := metadata.NewImageStore(database).List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, image := range found {
		got[image.Name] = true
		if !image.CreatedAt.Equal(created) {
			t.Errorf("%s: got creation time %s, want %s", image.Name, image.CreatedAt, created)
		}
		config, err := images.Config(ctx, database.ContentStore(), image.Target, nil)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := content.ReadBlob(ctx, database.ContentStore(), config)
		if err != nil {
			t.Fatal(err)
		}
		if wanted, err := want[image.Name].RawConfigFile(); err != nil || !bytes.Equal(raw, wanted) {
			t.Errorf("%s: got configuration %s, want %s, %v", image.Name, raw, wanted, err)
		}
		available, _, present, missing, err := images.Check(ctx, database.ContentStore(), image.Target, nil)
		if err != nil || !available || len(missing) > 0 {
			t.Errorf("%s: %d blobs are present, %d are missing after garbage collection, %v", image.Name, len(present), len(missing), err)
		}
	}
	wantNames := map[string]bool{}
	for name := range maps.Keys(want) {
		wantNames[name] = true
	}
	if diff := cmp.Diff(wantNames, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
