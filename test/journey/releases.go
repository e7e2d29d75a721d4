package journey

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Repository is a provider repository of one test, to which it adds versions.
type Repository struct {
	// Tools use this repository.
	Tools *Tools

	dir string
	t   testing.TB
}

// operatorFile is the operator's file of a release, beside that of the core provider.
const operatorFile = "operator-components.yaml"

// NewRepository returns an empty repository.
func NewRepository(t testing.TB, tools *Tools) *Repository {
	t.Helper()
	r := &Repository{dir: t.TempDir(), t: t}
	own := *tools
	own.config = filepath.Join(r.dir, "clusterctl.yaml")
	r.Tools = &own
	return r
}

// Release adds a version of all providers.
func (r *Repository) Release(version string) {
	r.t.Helper()
	if err := release(r.t.Context(), r.Tools.Root, version, r.dir); err != nil {
		r.t.Fatal(err)
	}
}

// Edit changes the components of a provider's version.
func (r *Repository) Edit(label, version string, change func(components string) string) {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir, label, version, "*-components*.yaml"))
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == operatorFile })
	if err != nil || len(files) != 1 {
		r.t.Fatalf("%s %s has components %v, want one file: %v", label, version, files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(change(string(content))), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// release writes a version of all providers, and a configuration of clusterctl, into dir.
func release(ctx context.Context, root, version, dir string) error {
	args := []string{"run", "./cmd/release", "--root", "..", "--version", version, "--out", dir}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, "release")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
