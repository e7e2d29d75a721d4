package attestation

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/licensecheck"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"golang.org/x/mod/module"

	"sigs.k8s.io/cluster-api/release/program"
)

// Tool is the creator of documents.
const Tool = "sigs.k8s.io/cluster-api/hack"

// certain is the share of a license file, in percent, that must be the text of the license.
const certain = 75

// Executable describes an executable.
type Executable struct {
	// Name is the program's name, Path that of the executable.
	Name, Path string
	Version    string
	Platform   program.Platform
	// Time of the document.
	Time time.Time
	// ModuleCache is the folder GOMODCACHE. Licenses of modules that it does not have are NOASSERTION.
	ModuleCache string
}

// BillOfMaterials returns the SPDX document of a program. The same executable gives the same document.
func BillOfMaterials(p Executable) ([]byte, error) {
	info, err := buildinfo.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the build information of %s: %w", p.Name, err)
	}
	content, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256(content)
	checksum := hex.EncodeToString(digest[:])
	title := p.Name + "-" + p.Platform.Suffix()
	executable := &v2_3.Package{
		PackageName: p.Name, PackageSPDXIdentifier: "Package-" + common.ElementID(p.Name), PackageVersion: p.Version,
		PackageFileName: filepath.Base(p.Path), PackageDownloadLocation: "NOASSERTION", PrimaryPackagePurpose: "APPLICATION",
		PackageChecksums:        []common.Checksum{{Algorithm: common.SHA256, Value: checksum}},
		PackageLicenseConcluded: "Apache-2.0", PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: "NOASSERTION",
		PackageSourceInfo: info.Path,
	}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: title,
		DocumentNamespace: "https://sigs.k8s.io/cluster-api/spdx/" + title + "-" + p.Version + "-" + checksum,
		CreationInfo: &v2_3.CreationInfo{
			Created:  p.Time.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: Tool}},
		},
		Packages:      []*v2_3.Package{executable},
		Relationships: []*v2_3.Relationship{related("DOCUMENT", common.TypeRelationshipDescribe, executable.PackageSPDXIdentifier)},
	}
	for _, linked := range append(modules(info), standardLibrary(info.GoVersion)) {
		linked.PackageLicenseDeclared = license(p.ModuleCache, linked)
		document.Packages = append(document.Packages, linked)
		document.Relationships = append(document.Relationships,
			related(executable.PackageSPDXIdentifier, common.TypeRelationshipDependsOn, linked.PackageSPDXIdentifier))
	}
	var out bytes.Buffer
	if err := json.Write(document, &out, json.Indent(" ")); err != nil {
		return nil, fmt.Errorf("cannot write the SPDX document of %s: %w", p.Name, err)
	}
	return out.Bytes(), nil
}

// modules returns the modules that a program links, without those of this repository, which have no version.
func modules(info *buildinfo.BuildInfo) []*v2_3.Package {
	var out []*v2_3.Package
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Sum == "" {
			continue
		}
		p := dependency(m.Path, m.Version, "pkg:golang/"+m.Path+"@"+m.Version)
		// Not a checksum of the package in terms of SPDX: it is computed from the checksums of the module's files.
		p.PackageSourceInfo = "go.sum " + m.Sum
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *v2_3.Package) int { return cmp.Compare(a.PackageName, b.PackageName) })
	return out
}

func standardLibrary(version string) *v2_3.Package {
	p := dependency("stdlib", version, "pkg:golang/stdlib@"+strings.TrimPrefix(version, "go"))
	p.PackageLicenseConcluded = "BSD-3-Clause"
	return p
}

// dependency returns a package that its purl identifies. It has no download location: that depends on the module proxy.
func dependency(name, version, url string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: name, PackageSPDXIdentifier: identifier(name, version), PackageVersion: version,
		PackageDownloadLocation: "NOASSERTION", PackageLicenseConcluded: "NOASSERTION", PackageCopyrightText: "NOASSERTION",
		PackageExternalReferences: []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: url,
		}},
	}
}

// identifier returns an identifier of letters, digits, dots and hyphens.
func identifier(name, version string) common.ElementID {
	return common.ElementID("Package-" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-':
			return r
		}
		return '-'
	}, name+"-"+version))
}

func related(a common.ElementID, kind string, b common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{RefA: common.MakeDocElementID("", string(a)), Relationship: kind, RefB: common.MakeDocElementID("", string(b))}
}

// license returns the licenses in the root of a module, joined by AND, or NOASSERTION if one is not recognized.
func license(cache string, p *v2_3.Package) string {
	const unknown = "NOASSERTION"
	if p.PackageLicenseConcluded != unknown {
		return p.PackageLicenseConcluded
	}
	escaped, err := module.EscapePath(p.PackageName)
	if err != nil || cache == "" {
		return unknown
	}
	dir := filepath.Join(cache, filepath.FromSlash(escaped)+"@"+p.PackageVersion)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unknown
	}
	var found []string
	for _, entry := range entries {
		name := strings.ToUpper(entry.Name())
		if !entry.Type().IsRegular() ||
			!strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return unknown
		}
		coverage := licensecheck.Scan(text)
		if coverage.Percent < certain {
			return unknown
		}
		for _, match := range coverage.Match {
			found = append(found, match.ID)
		}
	}
	if len(found) == 0 {
		return unknown
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), " AND ")
}
