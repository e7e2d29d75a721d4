// Package dockertest has what tests over a real container runtime share: where it is, a small image, and a proxy that can be cut.
//
// The image has busybox under the names of its commands, and flock: everything that bootstrap data needs of a node image, except
// kubeadm and a container runtime. Containers from it start in a fraction of a second.
//
// What does not belong here: implementations of engine.Engine. This package does not import them, so that their tests can import it.
package dockertest

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// Busybox is the name of the image. Change the tag with its content.
const Busybox = "cluster-api.invalid/test-busybox:v3"

// commands are the commands in the image.
const commands = "sh base64 cat chmod chown cp false head mkdir mv rm setsid sha256sum sleep stat tail tar test timeout touch true"

// Host returns the address of the container runtime, which has the image Busybox. Without a container runtime, it skips the test;
// if CAPI_REQUIRE_DOCKER is set, the test fails.
func Host(t *testing.T) string {
	t.Helper()
	absent := t.Skipf
	if os.Getenv("CAPI_REQUIRE_DOCKER") != "" {
		absent = t.Fatalf
	}
	api := Client(t)
	if _, err := api.Ping(t.Context(), client.PingOptions{NegotiateAPIVersion: true}); err != nil {
		absent("no container runtime; hack/docker.sh starts one: %v", err)
	}
	if _, err := api.ImageInspect(t.Context(), Busybox); err == nil {
		return address()
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		absent("install busybox-static: %v", err)
	}
	if err := importImage(t, api, busybox); err != nil {
		t.Fatal(err)
	}
	return address()
}

func address() string { return cmp.Or(os.Getenv("DOCKER_HOST"), client.DefaultDockerHost) }

// Client returns a client of the runtime for what engine.Engine does not do, such as pausing containers.
func Client(t *testing.T) *client.Client {
	t.Helper()
	api, err := client.New(client.WithHost(address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = api.Close() })
	return api
}

// Tag gives the image Busybox another name until the test ends.
func Tag(t *testing.T, name string) {
	t.Helper()
	api := Client(t)
	if _, err := api.ImageTag(t.Context(), client.ImageTagOptions{Source: Busybox, Target: name}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := Client(t).ImageRemove(contextOf(t), name, client.ImageRemoveOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// importImage imports the image.
func importImage(t *testing.T, api *client.Client, busybox string) error {
	t.Helper()
	program, err := os.ReadFile(busybox)
	if err != nil {
		return err
	}
	layer := &bytes.Buffer{}
	w := tar.NewWriter(layer)
	write := func(h tar.Header, content string) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	write(tar.Header{Name: "bin/busybox", Mode: 0o755}, string(program))
	for command := range strings.FieldsSeq(commands) {
		write(tar.Header{Name: "bin/" + command, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, "")
	}
	flock, err := buildFlock(t)
	if err != nil {
		return err
	}
	write(tar.Header{Name: "bin/flock", Mode: 0o755}, string(flock))
	write(tar.Header{Name: "etc/passwd", Mode: 0o644}, "root:x:0:0::/:/bin/sh\nlp:x:7:7::/:/bin/sh\n")
	write(tar.Header{Name: "etc/group", Mode: 0o644}, "root:x:0:\nlp:x:7:\n")
	if err := w.Close(); err != nil {
		return err
	}
	imported, err := api.ImageImport(t.Context(), client.ImageImportSource{Source: layer, SourceName: "-"}, Busybox, client.ImageImportOptions{
		Changes: []string{`CMD ["sleep", "1000000"]`},
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, imported)
	return err
}

// buildFlock builds the program that busybox lacks, without dependencies on libraries.
func buildFlock(t *testing.T) ([]byte, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "flock")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", out,
		"sigs.k8s.io/cluster-api/providers/infrastructure-docker/internal/engine/docker/dockertest/flock")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building flock: %w: %s", err, output)
	}
	return os.ReadFile(out)
}
