package attestation_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spdx/tools-golang/json"

	"sigs.k8s.io/cluster-api/release/attestation"
	"sigs.k8s.io/cluster-api/release/program"
)

// TestWrite writes the bill of materials of a small program with one dependency, and reads it again.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../hack", "-o", path, "./cmd/runc-bounded").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := attestation.Executable{
		Name: "runc-bounded", Path: path, Version: "v2.0.0", Platform: program.Platform{OS: "linux", Arch: "amd64"},
		Time: time.Unix(1767225600, 0), ModuleCache: strings.TrimSpace(string(cache)),
	}
	written, err := attestation.BillOfMaterials(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := attestation.BillOfMaterials(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(written), string(again)); diff != "" {
		t.Errorf("the second document differs: %s", diff)
	}
	document, err := json.Read(bytes.NewReader(written))
	if err != nil {
		t.Fatal(err)
	}
	licenses := map[string]string{}
	identifiers := map[string]bool{}
	for _, found := range document.Packages {
		if identifiers[string(found.PackageSPDXIdentifier)] {
			t.Errorf("two packages have the identifier %s", found.PackageSPDXIdentifier)
		}
		identifiers[string(found.PackageSPDXIdentifier)] = true
		licenses[found.PackageName] = found.PackageLicenseDeclared
		if found.PackageName == "github.com/moby/sys/capability" {
			if !strings.HasPrefix(found.PackageSourceInfo, "go.sum h1:") || found.PackageExternalReferences[0].Locator != "pkg:golang/github.com/moby/sys/capability@"+found.PackageVersion {
				t.Errorf("got %+v", found)
			}
		}
	}
	want := map[string]string{"runc-bounded": "Apache-2.0", "github.com/moby/sys/capability": "BSD-2-Clause", "stdlib": "BSD-3-Clause"}
	delete(licenses, "golang.org/x/sys")
	if diff := cmp.Diff(want, licenses); diff != "" {
		t.Errorf("licenses by package: %s", diff)
	}
	if len(document.Relationships) != len(document.Packages) {
		t.Errorf("%d packages have %d relationships", len(document.Packages), len(document.Relationships))
	}
}

func TestWriteWithoutBuildInformation(t *testing.T) {
	if _, err := attestation.BillOfMaterials(attestation.Executable{Name: "x", Path: "bill_test.go"}); err == nil || !strings.Contains(err.Error(), "build information of x") {
		t.Errorf("got %v", err)
	}
}
