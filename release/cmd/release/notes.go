package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// changelogFile has a section for each version.
	changelogFile = "CHANGELOG.md"
	// notesFile is the text of a release.
	notesFile = "release-notes.md"
)

// notes writes the section of the version in the changelog, as the text of the release. Links in it lead to the tag.
func (r release) notes(f *folder, root string) error {
	raw, err := os.ReadFile(filepath.Join(root, changelogFile))
	if err != nil {
		return err
	}
	section, err := sectionOf(string(raw), r.version)
	if err != nil {
		return err
	}
	tag := strings.TrimSuffix(r.releases, "/releases") + "/blob/" + r.version + "/"
	return f.write(notesFile, "the whole release", 0o600, []byte(strings.ReplaceAll(section, "](docs/", "]("+tag+"docs/")))
}

// sectionOf returns the section of a version, without its heading.
func sectionOf(changelog, version string) (string, error) {
	_, section, found := strings.Cut("\n"+changelog, "\n## "+version+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if section = strings.TrimSpace(section); !found || section == "" {
		return "", fmt.Errorf("%s has no text for %s: add a section", changelogFile, version)
	}
	return section + "\n", nil
}
