package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/cluster-api/test/journey"
)

// images are the images of all managers that tests install in clusters, and a release that installs them. They are built once.
type images struct {
	once sync.Once
	err  error
}

// built is used by several tests. Like the management cluster, it cannot be passed to them.
var built images

// release returns a local repository in dir, the same one for every test. The images are in Docker.
func (i *images) release(t *testing.T, tools *journey.Tools, dir string) string {
	t.Helper()
	repository := filepath.Join(dir, "e2e", "repository")
	i.once.Do(func() { i.err = buildImages(context.Background(), tools.Root, repository) })
	if i.err != nil {
		t.Fatal(i.err)
	}
	return repository
}

// buildImages builds the images of the managers for this machine, loads them into Docker, and writes a release that installs
// them.
func buildImages(ctx context.Context, root, repository string) error {
	var programs []string
	for _, d := range operated() {
		programs = append(programs, d.image)
	}
	for _, args := range [][]string{
		{"run", "./cmd/images", "--root", "..", "--version", testVersion, "--registry", testRegistry, "--load",
			"--platforms", "linux/" + runtime.GOARCH, "--programs", strings.Join(programs, ","), "--out", filepath.Join(filepath.Dir(repository), "images")},
		{"run", "./cmd/release", "--root", "..", "--version", testVersion, "--registry", testRegistry, "--out", repository},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = filepath.Join(root, "release")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	config, err := os.OpenFile(filepath.Join(repository, "clusterctl.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(config, "CAPI_MEMORY_LIMIT: %s\n", memoryLimit); err != nil {
		return err
	}
	return config.Close()
}
