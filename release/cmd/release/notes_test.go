package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSectionOf(t *testing.T) {
	const changelog = "# Changelog\n\nText.\n\n## v2.1.0\n\nNew.\n\n### More\n\nMuch.\n\n## v2.0.0\n\n## v2.0.0-rc.1\n\nOld.\n"
	for _, tc := range []struct{ reason, version, want string }{
		{"the newest, with its own headings", "v2.1.0", "New.\n\n### More\n\nMuch.\n"},
		{"the last", "v2.0.0-rc.1", "Old.\n"},
		{"nothing to say", "v2.0.0", ""},
		{"a version that begins like another", "v2.1", ""},
	} {
		got, err := sectionOf(changelog, tc.version)
		if got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%s: got %q, %v", tc.reason, got, err)
		}
	}
}

// TestReleaseNotes: the changelog has a section of the version that the Makefile builds, and its links lead to the tag.
func TestReleaseNotes(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(makefile), "\nVERSION ?= ")
	version, _, _ := strings.Cut(rest, "\n")
	f, err := newFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: version, releases: "https://github.com/acme/cluster-api/releases"}
	if err := r.notes(f, root); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(f.path, notesFile))
	if err != nil || strings.Contains(string(got), "](docs/") || !strings.Contains(string(got), "](https://github.com/acme/cluster-api/blob/"+version+"/docs/") {
		t.Errorf("%v:\n%s", err, got)
	}
}
