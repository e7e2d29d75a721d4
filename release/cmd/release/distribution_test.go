package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sigs.k8s.io/cluster-api/release/program"
)

// distributed writes the files for package managers, of small programs, and returns their contents by name.
func distributed(t *testing.T, platforms ...program.Platform) map[string][]byte {
	t.Helper()
	f, err := newFolder(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range platforms {
		for _, name := range []string{program.Clusterctl, program.Capi} {
			if err := f.write(name+"-"+p.Suffix(), name, 0o755, []byte(name+" for "+p.String())); err != nil {
				t.Fatal(err)
			}
			if err := f.write(name+"-"+p.Suffix()+".spdx.json", name, 0o600, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	given := maps.Clone(f.from)
	r := release{files: filesOf(root), version: "v2.0.5", releases: "https://github.com/acme/cluster-api/releases", platforms: platforms}
	if err := r.distribute(f, root, time.Unix(1700000000, 0)); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for name := range f.from {
		if given[name] != "" {
			continue
		}
		if out[name], err = os.ReadFile(filepath.Join(f.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestDistribution checks the files for package managers: their names, what they refer to, and that they can be reproduced.
func TestDistribution(t *testing.T) {
	platforms := []program.Platform{{OS: "linux", Arch: "arm64"}, {OS: "darwin", Arch: "amd64"}, {OS: "windows", Arch: "amd64"}}
	files := distributed(t, platforms...)
	want := []string{
		"capi-2.0.5-1.aarch64.rpm", "capi_2.0.5_arm64.deb", "clusterctl-2.0.5-1.aarch64.rpm", "clusterctl-darwin-amd64.tar.gz", "clusterctl-linux-arm64.tar.gz",
		"clusterctl-windows-amd64.tar.gz", "clusterctl.krew.yaml", "clusterctl.rb", "clusterctl_2.0.5_arm64.deb",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
	again := distributed(t, platforms...)
	for name, content := range files {
		if !bytes.Equal(content, again[name]) {
			t.Errorf("%s is not the same the second time", name)
		}
	}
	for name, count := range map[string]int{"clusterctl.rb": 2, "clusterctl.krew.yaml": 3} {
		text := string(files[name])
		urls := regexp.MustCompile(`https://github\.com/acme/cluster-api/releases/download/v2\.0\.5/([^"\s]+)`).FindAllStringSubmatch(text, -1)
		if len(urls) != count {
			t.Errorf("%s has %d addresses of files:\n%s", name, len(urls), text)
		}
		for _, url := range urls {
			sum := sha256.Sum256(files[url[1]])
			if files[url[1]] == nil || !strings.Contains(text, hex.EncodeToString(sum[:])) {
				t.Errorf("%s: %s is no file of the release, or has another checksum", name, url[1])
			}
		}
	}
}

// TestPackagesHave checks what is in archives and packages.
func TestPackagesHave(t *testing.T) {
	files := distributed(t, program.Platform{OS: "linux", Arch: "amd64"}, program.Platform{OS: "windows", Arch: "amd64"})
	archive := untar(t, files["clusterctl-linux-amd64.tar.gz"])
	for path, text := range map[string]string{
		"clusterctl": "clusterctl for linux/amd64", "LICENSE": "Apache License", "completions/clusterctl.bash": "__start_clusterctl",
		"completions/_clusterctl": "#compdef clusterctl", "completions/clusterctl.fish": "complete -c clusterctl",
		"man/clusterctl.1": ".SH OPTIONS", "man/clusterctl-create-cluster.1": "clusterctl-create-cluster - ",
	} {
		if !strings.Contains(archive[path], text) {
			t.Errorf("the archive: %s does not have %q:\n%.200s", path, text, archive[path])
		}
	}
	if _, ok := untar(t, files["clusterctl-windows-amd64.tar.gz"])["clusterctl.exe"]; !ok {
		t.Error("programs for Windows end with .exe")
	}
	if strings.Contains(archive["man/clusterctl.1"], "Auto generated") || !strings.Contains(archive["man/clusterctl.1"], "Nov 2023") {
		t.Errorf("the manual has the time of the build:\n%.300s", archive["man/clusterctl.1"])
	}
	// The members of a package begin at even offsets, after a header of 60 bytes.
	deb := files["capi_2.0.5_amd64.deb"]
	data := untar(t, deb[bytes.Index(deb, []byte("data.tar.gz"))+60:])
	unit, err := os.ReadFile(filepath.Join(filesOf(root), "capi.service"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"./usr/bin/capi": "capi for linux/amd64", "./usr/lib/systemd/system/capi.service": string(unit), "./usr/lib/sysusers.d/capi.conf": "u capi ",
		"./usr/share/doc/capi/copyright": "Apache License", "./usr/share/doc/capi/capi.spdx.json": "{}", "./usr/share/bash-completion/completions/capi": "__start_capi",
		"./usr/share/zsh/vendor-completions/_capi": "#compdef capi", "./usr/share/fish/vendor_completions.d/capi.fish": "complete -c capi",
	} {
		if !strings.Contains(data[path], text) {
			t.Errorf("the Debian package: %s does not have %q", path, text)
		}
	}
}

// untar returns the files of a compressed archive, and ignores what follows it.
func untar(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	zipped.Multistream(false)
	r, out := tar.NewReader(zipped), map[string]string{}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[h.Name] = string(content)
	}
}

// TestUnitOfTheBook: the book shows the unit of the packages, which starts the program that they install.
func TestUnitOfTheBook(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join(filesOf(root), "capi.service"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "book", "service.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n"+string(unit)+"```\n") {
		t.Error("docs/book/service.md shows another unit than release/files/capi.service: copy it")
	}
	if !strings.Contains(string(unit), "\nExecStart=/usr/bin/capi ") {
		t.Error("packages install /usr/bin/capi, and the unit starts another program")
	}
}

func TestInvalidReleases(t *testing.T) {
	for address, valid := range map[string]bool{
		"https://github.com/acme/cluster-api/releases": true, "https://github.com/acme/cluster-api": false, "http://github.com/acme/cluster-api/releases": false,
		"https://github.com/acme/cluster-api/releases/": false, "https://example.org/acme/cluster-api/releases": false, "": false,
	} {
		if err := program.CheckReleases(address); (err == nil) != valid {
			t.Errorf("%q: got %v", address, err)
		}
	}
	err := run(t.Context(), []string{"--root", root, "--version", "v2.0.5", "--out", t.TempDir(), "--releases", "https://example.org"}, os.Getenv)
	if err == nil || !strings.Contains(err.Error(), "--releases") {
		t.Errorf("got %v", err)
	}
}
