package image_test

import (
	"archive/tar"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"sigs.k8s.io/cluster-api/release/image"
	"sigs.k8s.io/cluster-api/release/program"
)

var (
	amd64 = program.Platform{OS: "linux", Arch: "amd64"}
	arm64 = program.Platform{OS: "linux", Arch: "arm64"}
)

func config() image.Config {
	return image.Config{
		Executable: "/manager", Annotations: map[string]string{"org.opencontainers.image.title": "manager"}, Time: time.Unix(1767225600, 0).UTC(),
	}
}

// built returns the image of a program.
func built(t *testing.T, p program.Platform) v1.Image {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("executable for "+p.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := image.New(config(), p, path)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestNew(t *testing.T) {
	made := built(t, arm64)
	file, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	want := v1.Config{
		User: "65532:65532", Entrypoint: []string{"/manager"}, WorkingDir: "/home/nonroot", Labels: config().Annotations,
		Env: []string{"PATH=/", "HOME=/home/nonroot", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
	}
	if diff := cmp.Diff(want, file.Config); diff != "" {
		t.Error(diff)
	}
	if file.OS != "linux" || file.Architecture != "arm64" || !file.Created.Equal(config().Time) {
		t.Errorf("got %s/%s of %s", file.OS, file.Architecture, file.Created)
	}
	manifest, err := made.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(config().Annotations, manifest.Annotations); diff != "" {
		t.Error(diff)
	}
	files := map[string]string{}
	flat := mutate.Extract(made)
	for reader := tar.NewReader(flat); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(config().Time) {
			t.Errorf("%s has the time %s", header.Name, header.ModTime)
		}
		files[header.FileInfo().Mode().String()+" "+header.Name] = string(content)
	}
	if err := flat.Close(); err != nil {
		t.Fatal(err)
	}
	const certificates = "-rw-r--r-- etc/ssl/certs/ca-certificates.crt"
	if n := strings.Count(files[certificates], "BEGIN CERTIFICATE"); n < 50 {
		t.Errorf("got %d certificates of CAs", n)
	}
	delete(files, certificates)
	wantFiles := map[string]string{
		"-rwxr-xr-x manager": "executable for linux/arm64", "drwxr-xr-x etc": "", "drwxr-xr-x etc/ssl": "", "drwxr-xr-x etc/ssl/certs": "",
		"drwxr-xr-x home": "", "drwx------ home/nonroot": "", "dtrwxrwxrwx tmp": "",
		"-rw-r--r-- etc/group":  "root:x:0:\nnonroot:x:65532:\n",
		"-rw-r--r-- etc/passwd": "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
	}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Error(diff)
	}
}

// TestReproducible builds an image twice.
func TestReproducible(t *testing.T) {
	var digests []string
	for range 2 {
		index, err := image.Index(config(), []program.Platform{amd64, arm64}, map[program.Platform]v1.Image{amd64: built(t, amd64), arm64: built(t, arm64)})
		if err != nil {
			t.Fatal(err)
		}
		digest, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest.String())
	}
	if digests[0] != digests[1] {
		t.Errorf("the same program has the images %v", digests)
	}
}

func TestWriteArchive(t *testing.T) {
	tag, err := name.NewTag("registry.example/capi/manager:v1")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "archive", "manager.tar")
	made := built(t, amd64)
	if err := image.WriteArchive(path, tag, made); err != nil {
		t.Fatal(err)
	}
	loaded, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	want, err := made.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := loaded.ConfigName(); err != nil || got != want {
		t.Errorf("the archive has the image %s, want %s: %v", got, want, err)
	}
}

// TestPush pushes a layout to a registry in memory.
func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/capi/manager"
	path, err := image.NewLayout(filepath.Join(t.TempDir(), "layout"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := image.Index(config(), []program.Platform{amd64}, map[program.Platform]v1.Image{amd64: built(t, amd64)})
	if err != nil {
		t.Fatal(err)
	}
	named := func(tag string) layout.Option {
		return layout.WithAnnotations(map[string]string{image.RefName: repository + ":" + tag})
	}
	if err := path.AppendIndex(index, named("v1")); err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(built(t, arm64), named("sha256-1.sig")); err != nil {
		t.Fatal(err)
	}
	if err := image.Push(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	repo, err := name.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(repo)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sha256-1.sig", "v1"}, tags); diff != "" {
		t.Error(diff)
	}
	pulled, err := remote.Index(repo.Tag("v1"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := pulled.Digest(); err != nil || got != want {
		t.Errorf("got %s, want %s: %v", got, want, err)
	}
}

func TestReadList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images.json")
	want := image.List{Registry: "r", Version: "v1", Images: map[string]image.Built{"p": {Digest: "sha256:1", Platforms: map[string]string{"linux/amd64": "sha256:2"}}}}
	if err := want.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := image.ReadList(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := image.ReadList(path + ".none"); err == nil {
		t.Error("a list that does not exist: got no error")
	}
}
