package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"

	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/cache"
	"sigs.k8s.io/cluster-api/providers/infrastructure-docker/nodeimage/internal/filetree"
)

// engine is a docker command that keeps one image, in a file.
const engine = `#!/bin/sh
case $1 in
image) cat "$STATE/image" ;;
load) cat >/dev/null; echo load >>"$STATE/loads"; echo "sha256:$(wc -l <"$STATE/loads" | tr -d ' ')" >"$STATE/image" ;;
esac
`

func testBuilder(t *testing.T) (b *Builder, state string) {
	t.Helper()
	state = t.TempDir()
	if err := os.WriteFile(filepath.Join(state, "docker"), []byte(engine), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", state+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("STATE", state)
	kept, err := cache.Open(t.TempDir(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	return &Builder{Cache: kept, Mirror: "http://mirror.example/debian", Progress: func(format string, args ...any) { t.Logf(format, args...) }}, state
}

func TestImageIsBuiltOnce(t *testing.T) {
	b, state := testBuilder(t)
	assembled := 0
	assemble := func(context.Context) (v1.Image, error) {
		assembled++
		return empty.Image, nil
	}
	steps := []struct {
		reason    string
		before    func() error
		assembled int
	}{
		{reason: "the first run builds", before: func() error { return nil }, assembled: 1},
		{reason: "the second run does nothing", before: func() error { return nil }, assembled: 1},
		{reason: "an image that was removed from Docker is built again", before: func() error { return os.Remove(filepath.Join(state, "image")) }, assembled: 2},
		{reason: "another image with this name is replaced", before: func() error {
			return os.WriteFile(filepath.Join(state, "image"), []byte("sha256:other\n"), 0o644)
		}, assembled: 3},
		{reason: "another mirror is another image", before: func() error { b.Mirror = "http://other.example/debian"; return nil }, assembled: 4},
	}
	for _, step := range steps {
		if err := step.before(); err != nil {
			t.Fatal(err)
		}
		if err := b.image(t.Context(), "example/node:v1", assemble); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}
		if assembled != step.assembled {
			t.Errorf("%s: assembled %d times, want %d", step.reason, assembled, step.assembled)
		}
	}
}

func TestImageThatCannotBeBuilt(t *testing.T) {
	b, state := testBuilder(t)
	failure := errors.New("failed")
	for range 2 { // a failure is not cached
		err := b.image(t.Context(), "example/node:v1", func(context.Context) (v1.Image, error) { return nil, failure })
		if !errors.Is(err, failure) {
			t.Errorf("got %v, want %v", err, failure)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "loads")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing must be loaded, got %v", err)
	}
}

func TestImageIsWritten(t *testing.T) {
	b, state := testBuilder(t)
	b.Output = t.TempDir()
	err := b.image(t.Context(), "example/node:v1", func(context.Context) (v1.Image, error) { return empty.Image, nil })
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(b.Output, "example-node-v1.tar")); err != nil || info.Size() == 0 {
		t.Errorf("got %v, %v, want an archive", info, err)
	}
	if _, err := os.Stat(filepath.Join(state, "loads")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing must be loaded, got %v", err)
	}
}

func TestNodeFiles(t *testing.T) {
	system := filetree.New()
	system.AddFile("usr/lib/cni/ptp", 0o755, nil)
	own, err := nodeFiles("v1.36.3", system, templateValues{Pause: "registry.example/pause:1"})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ reason, name, want string }{
		{reason: "the pod network runs from an image that nodes have", name: "kind/manifests/default-cni.yaml", want: "image: " + networkImage + "\n"},
		{reason: "containerd starts Pods from an image that nodes have", name: "etc/containerd/config.toml", want: `sandbox_image = "registry.example/pause:1"`},
		{reason: "the version can be read", name: "kind/version", want: "v1.36.3\n"},
	}
	for _, test := range tests {
		content, err := own.Read(test.name)
		if err != nil || !strings.Contains(string(content), test.want) {
			t.Errorf("%s: %s must contain %q, got %v:\n%s", test.reason, test.name, test.want, err, content)
		}
	}
	if links := own.Glob("opt/cni/bin/*"); len(links) != 1 || links[0] != "opt/cni/bin/ptp" {
		t.Errorf("plugins must be in the folder that containerd searches, got %v", links)
	}
}
