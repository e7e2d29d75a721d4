package conformance

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPublishedReleases: releases of other projects, read in place, have no errors, whatever their contracts are.
func TestPublishedReleases(t *testing.T) {
	root := filepath.Join(cmp.Or(os.Getenv("CAPI_FACTS_DIR"), filepath.Join("..", "..", "..", "shared", "facts")), "data", "providers")
	folders, err := filepath.Glob(filepath.Join(root, "*-v*"))
	if err != nil || len(folders) == 0 {
		t.Skipf("there are no published releases: set CAPI_FACTS_DIR to the directory with data/providers (%v)", err)
	}
	for _, folder := range folders {
		name, version, _ := strings.Cut(filepath.Base(folder), "-")
		r, err := Open(linked(t, folder, "infrastructure-"+name, version), "", "")
		if err != nil {
			t.Fatal(err)
		}
		findings, err := r.Check()
		if err != nil {
			t.Fatal(err)
		}
		var errs []string
		for _, f := range findings {
			// The classes are not in the files of the release, but in those that it is generated from.
			if f.Severity == Error && !strings.HasPrefix(filepath.Base(f.File), "clusterclass-") {
				errs = append(errs, f.Message)
			}
		}
		for _, message := range errs {
			t.Errorf("%s: %s", name, message)
		}
	}
}

// linked returns a folder with links to the files of a release.
func linked(t *testing.T, folder, label, version string) string {
	t.Helper()
	absolute, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), label, version)
	if err := os.MkdirAll(to, 0o750); err != nil {
		t.Fatal(err)
	}
	templates, err := filepath.Glob(filepath.Join(absolute, "templates", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"infrastructure-components.yaml": filepath.Join(absolute, "components.yaml"), "metadata.yaml": filepath.Join(absolute, "metadata.yaml")}
	for _, file := range templates {
		links[filepath.Base(file)] = file
	}
	for link, file := range links {
		if err := os.Symlink(file, filepath.Join(to, link)); err != nil {
			t.Fatal(err)
		}
	}
	return to
}
