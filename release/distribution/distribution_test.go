package distribution_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"sigs.k8s.io/cluster-api/release/distribution"
)

// example is a package with a program and a script.
func example(files ...distribution.File) distribution.Package {
	return distribution.Package{
		Name: "capi", Summary: "A management cluster", Description: "It runs\nin one process.", Version: "v2.1.0-rc.1", Arch: "arm64",
		Homepage: "https://example.org/capi", Maintainer: "Jane <jane@example.org>", Time: time.Unix(1700000001, 5), Files: files,
		AfterInstall: "echo installed\n", BeforeRemove: "echo removed\n",
	}
}

// program and license are the files of the example.
func program() distribution.File {
	return distribution.File{Path: "usr/bin/capi", Mode: 0o755, Content: []byte("odd")}
}

func license() distribution.File {
	return distribution.File{Path: "usr/share/doc/capi/copyright", Mode: 0o644, Content: []byte("free"), License: true}
}

func TestDeb(t *testing.T) {
	p := example(license(), program())
	deb, err := p.Deb()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.DebFile(); got != "capi_2.1.0~rc.1_arm64.deb" {
		t.Errorf("the file is %s", got)
	}
	names, contents := members(t, deb)
	if !slices.Equal(names, []string{"debian-binary", "control.tar.gz", "data.tar.gz"}) || string(contents["debian-binary"]) != "2.0\n" {
		t.Errorf("members %q, version %q", names, contents["debian-binary"])
	}
	wantControl := map[string]string{
		"./control": "0644 Package: capi\nVersion: 2.1.0~rc.1\nArchitecture: arm64\nMaintainer: Jane <jane@example.org>\nInstalled-Size: 2\n" +
			"Section: admin\nPriority: optional\nHomepage: https://example.org/capi\nDescription: A management cluster\n It runs\n in one process.\n",
		"./md5sums":  "0644 a2b6f2a6066ed8700d83335fc50a2b8e  usr/bin/capi\naa2d6e4f578eb0cfaba23beef76c2194  usr/share/doc/capi/copyright\n",
		"./postinst": "0755 #!/bin/sh\nset -e\n[ \"$1\" = configure ] || exit 0\necho installed\n",
		"./prerm":    "0755 #!/bin/sh\nset -e\n[ \"$1\" = remove ] || exit 0\necho removed\n",
	}
	if diff := cmp.Diff(wantControl, unpacked(t, contents["control.tar.gz"])); diff != "" {
		t.Errorf("control files: -want +got:\n%s", diff)
	}
	wantData := map[string]string{"./usr/bin/capi": "0755 odd", "./usr/share/doc/capi/copyright": "0644 free"}
	if diff := cmp.Diff(wantData, unpacked(t, contents["data.tar.gz"])); diff != "" {
		t.Errorf("files: -want +got:\n%s", diff)
	}
	again := example(program(), license())
	if other, err := again.Deb(); err != nil || !bytes.Equal(deb, other) {
		t.Errorf("the same input has to give the same bytes, %v", err)
	}
}

// TestDpkg lets dpkg read a package, where it is installed.
func TestDpkg(t *testing.T) {
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	p := example(license(), program())
	deb, err := p.Deb()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, p.DebFile())
	if err := os.WriteFile(file, deb, 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), dpkg, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("dpkg-deb %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if got := run("--field", file, "Package", "Version", "Architecture"); got != "Package: capi\nVersion: 2.1.0~rc.1\nArchitecture: arm64\n" {
		t.Errorf("dpkg reads %q", got)
	}
	run("--raw-extract", file, filepath.Join(dir, "x"))
	sums := exec.CommandContext(t.Context(), "md5sum", "--check", "--strict", "DEBIAN/md5sums")
	sums.Dir = filepath.Join(dir, "x")
	if out, err := sums.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRPM(t *testing.T) {
	p := example(license(), program())
	rpm, err := p.RPM()
	if err != nil {
		t.Fatal(err)
	}
	if file, err := p.RPMFile(); file != "capi-2.1.0~rc.1-1.aarch64.rpm" || err != nil {
		t.Errorf("the file is %s, %v", file, err)
	}
	h, files := readRPM(t, rpm)
	for tag, want := range map[int]string{
		tagName: "capi", tagVersion: "2.1.0~rc.1", tagRelease: "1", tagLicense: "Apache-2.0", tagArch: "aarch64", tagBuildHost: "localhost",
		tagPostin: "echo installed\n", tagPreun: "[ \"$1\" = 0 ] || exit 0\necho removed\n", tagFileFlags: "0 128",
	} {
		if h[tag] != want {
			t.Errorf("tag %d is %q, want %q", tag, h[tag], want)
		}
	}
	want := map[string]string{"/usr/bin/capi": "0755 odd", "/usr/share/doc/capi/copyright": "0644 free"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files: -want +got:\n%s", diff)
	}
	again := example(program(), license())
	if other, err := again.RPM(); err != nil || !bytes.Equal(rpm, other) {
		t.Errorf("the same input has to give the same bytes, %v", err)
	}
	p.Arch = "mips"
	if _, err := p.RPM(); err == nil || !strings.Contains(err.Error(), "mips") {
		t.Errorf("an unknown architecture: %v", err)
	}
}

func TestArchive(t *testing.T) {
	archive, err := distribution.Archive([]distribution.File{license(), program()}, time.Unix(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"usr/bin/capi": "0755 odd", "usr/share/doc/capi/copyright": "0644 free"}
	if diff := cmp.Diff(want, unpacked(t, archive)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if other, err := distribution.Archive([]distribution.File{program(), license()}, time.Unix(1, 0)); err != nil || !bytes.Equal(archive, other) {
		t.Errorf("the same input has to give the same bytes, %v", err)
	}
}

// described is a program with archives for four platforms.
func described() distribution.Program {
	p := distribution.Program{Name: "clusterctl", Summary: "Install things", Description: "It installs\nthings.", Homepage: "https://example.org", Version: "v2.0.5"}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		goos, arch, _ := strings.Cut(platform, "/")
		name := "clusterctl"
		if goos == "windows" {
			name += ".exe"
		}
		p.Downloads = append(p.Downloads, distribution.NewDownload(goos, arch, "https://example.org/"+goos+"-"+arch+".tar.gz", []byte(platform), name))
	}
	return p
}

func TestFormula(t *testing.T) {
	got, err := described().Formula()
	if err != nil {
		t.Fatal(err)
	}
	const want = `class Clusterctl < Formula
  desc "Install things"
  homepage "https://example.org"
  version "2.0.5"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://example.org/darwin-arm64.tar.gz"
      sha256 "SUM"
    end
  end

  on_linux do
    on_arm do
      url "https://example.org/linux-arm64.tar.gz"
      sha256 "SUM"
    end
    on_intel do
      url "https://example.org/linux-amd64.tar.gz"
      sha256 "SUM"
    end
  end

  def install
    bin.install "clusterctl"
`
	sums := regexp.MustCompile(`[0-9a-f]{64}`)
	text := sums.ReplaceAllString(string(got), "SUM")
	if diff := cmp.Diff(want, text[:min(len(want), len(text))]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if blocks, ends := regexp.MustCompile(`(?m)(^class | do$|^  def )`).FindAll(got, -1), regexp.MustCompile(`(?m)^ *end$`).FindAll(got, -1); len(blocks) != len(ends) {
		t.Errorf("%d blocks begin, %d end", len(blocks), len(ends))
	}
}

// TestKrew checks what Krew's validation of manifests demands.
func TestKrew(t *testing.T) {
	got, err := described().Krew()
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.UnmarshalStrict(got, &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "clusterctl" || plugin.Spec.Version != "v2.0.5" ||
		plugin.Spec.ShortDescription == "" || strings.Contains(plugin.Spec.ShortDescription, "\n") || plugin.Spec.Description == "" || len(plugin.Spec.Platforms) != 4 {
		t.Errorf("got %+v", plugin)
	}
	for _, p := range plugin.Spec.Platforms {
		goos := p.Selector.MatchLabels["os"]
		if want := "https://example.org/" + goos + "-" + p.Selector.MatchLabels["arch"] + ".tar.gz"; p.URI != want || len(p.SHA256) != 64 {
			t.Errorf("%v: %s, %s", p.Selector, p.URI, p.SHA256)
		}
		if (p.Bin == "clusterctl.exe") != (goos == "windows") {
			t.Errorf("%s: the program is %s", goos, p.Bin)
		}
	}
	if _, err := (distribution.Program{Name: "none"}).Krew(); err == nil {
		t.Error("Krew refuses a plugin without platforms")
	}
}
